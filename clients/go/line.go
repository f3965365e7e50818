package duestream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Refused is a call that a daemon refuses, and would refuse again.
type Refused struct {
	Status       int
	Code, Detail string
}

func (r *Refused) Error() string { return fmt.Sprintf("%d %s: %s", r.Status, r.Code, r.Detail) }

// No pause between two sends is longer.
const longestPause = 5 * time.Second

var errUnanswered = errors.New("no daemon has answered")

// line is how a worker reaches its daemons.
type line struct {
	urls               []string
	queue, token, name string
	pid                int
	turn               atomic.Int64
}

// Sends the same call until it is answered, to the next daemon each time; tries 0: for ever.
func (l *line) call(ctx context.Context, verb string, body map[string]any, answer any, tries int) error {
	if os.Getpid() != l.pid {
		return errors.New("this process was forked: call Run after the fork, it makes a name of its own")
	}
	body["worker"] = l.name
	pause := 50 * time.Millisecond
	for sent := 1; ; sent++ {
		after, err := l.send(ctx, verb, body, answer)
		if !errors.Is(err, errUnanswered) {
			return err
		}
		if ctx.Err() != nil || (tries > 0 && sent >= tries) {
			return err
		}
		l.turn.Add(1)
		if verb == "claim" {
			body["again"] = true
		}
		if wait := time.Duration(float64(pause) * (0.5 + rand.Float64()/2)); after < wait {
			after = wait
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(after):
		}
		if pause *= 2; pause > longestPause {
			pause = longestPause
		}
	}
}

func (l *line) send(ctx context.Context, verb string, body map[string]any, answer any) (time.Duration, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	wait := 10 * time.Second
	if ms, ok := body["wait"].(int64); ok {
		wait += time.Duration(ms) * time.Millisecond
	}
	timed, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	base := strings.TrimRight(l.urls[int(l.turn.Load())%len(l.urls)], "/")
	at := fmt.Sprintf("%s/v1/queues/%s/%s", base, url.PathEscape(l.queue), verb)
	request, err := http.NewRequestWithContext(timed, http.MethodPost, at, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	if l.token != "" {
		request.Header.Set("Authorization", "Bearer "+l.token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, errUnanswered
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, errUnanswered
	}
	if response.StatusCode == http.StatusOK {
		if answer == nil {
			return 0, nil
		}
		return 0, json.Unmarshal(said, answer)
	}
	if response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= 500 {
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		if after := time.Duration(seconds) * time.Second; after < longestPause {
			return after, errUnanswered
		}
		return longestPause, errUnanswered
	}
	refusal := &Refused{Status: response.StatusCode}
	_ = json.Unmarshal(said, refusal)
	return 0, refusal
}
