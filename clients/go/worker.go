// Package duestream runs jobs of duestream in Go, over HTTP, with nothing but Go's own library.
//
//	err := duestream.Run(ctx, duestream.Options{URLs: []string{"http://127.0.0.1:7420"}, Queue: "emails"},
//		func(ctx context.Context, job *duestream.Job) (any, error) { return nil, send(ctx, job.Data) })
//
// A handler may begin more than once for one job: give job.Token to your store, which refuses a token that is lower than one
// it has. Every call is sent again, as it is, until it is answered; a lease counts from when its call was sent.
package duestream

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Why the context of a handler ended: job.Stopped says it.
var (
	ErrCancelled = errors.New("cancelled")
	ErrLeaseLost = errors.New("lease lost")
	ErrTimeout   = errors.New("timeout")
	ErrShutdown  = errors.New("shutdown")
)

// Job is one start of one job.
type Job struct {
	ID, Name                   string
	Data                       json.RawMessage // With a Codec: as it was stored.
	Token                      string          // It only grows.
	Attempt, Failures, Crashes int
	DueMs, TimeoutMs           int64
	Group, Priority, Codec     string
	Headers                    map[string]string
	Run                        string // Opaque.
	Begin                      bool   // At most once.
	until                      time.Time
	stop                       context.CancelFunc
	mu                         sync.Mutex
	why                        error
	told                       map[string]any
}

// Progress says how far the handler is, from 0 to 1, with the next beat.
func (job *Job) Progress(fraction float64, text string) {
	job.mu.Lock()
	defer job.mu.Unlock()
	told := map[string]any{"progress": fraction, "text": text}
	if turns, ok := job.told["spent"]; ok {
		told["spent"] = turns
	}
	job.told = told
}

// Spent says how many turns of the rate this start has really used, in all, in a queue with costs: with the next beat, or with the end.
func (job *Job) Spent(turns int) {
	job.mu.Lock()
	defer job.mu.Unlock()
	told := map[string]any{}
	for name, value := range job.told {
		told[name] = value
	}
	told["spent"] = turns
	job.told = told
}

func (job *Job) end(why error) {
	job.mu.Lock()
	defer job.mu.Unlock()
	if job.why == nil {
		job.why = why
		job.stop()
	}
}

// Stopped says why the handler is to end; nil: it is not.
func (job *Job) Stopped() error {
	job.mu.Lock()
	defer job.mu.Unlock()
	return job.why
}

// Handler runs a job. What it returns is the result, or a failure: see Fatal, RetryIn and Defer.
type Handler func(ctx context.Context, job *Job) (any, error)

type outcome struct {
	error
	fields map[string]any
}

func (o outcome) Unwrap() error { return o.error }

// Fatal makes a dead letter at once.
func Fatal(err error) error { return outcome{err, map[string]any{"end": "fail", "fatal": true}} }

// RetryIn fails, and says when to try again.
func RetryIn(d time.Duration, err error) error {
	return outcome{err, map[string]any{"end": "fail", "retryIn": d.Milliseconds()}}
}

// Defer puts the job off, without a failure.
func Defer(d time.Duration, reason string) error {
	fields := map[string]any{"end": "defer", "delay": d.Milliseconds(), "reason": reason}
	return outcome{errors.New(reason), fields}
}

// Options of a worker.
type Options struct {
	URLs        []string // One daemon or several, with http.work on.
	Queue       string
	Token       string        // Of "duestream tokens create --scope work".
	Concurrency int           // Default 10.
	Label       string        // Default "go".
	Wait        time.Duration // Of a claim; default 20 s.
	Grace       time.Duration // For handlers at a stop; default 25 s.
}

const runsMax = 80

type worker struct {
	Options
	line
	handle            Handler
	mu                sync.Mutex
	lease             time.Duration
	beat              time.Duration
	running           map[string]*Job
	ends              []map[string]any
	claimed           []map[string]any // Ends that went with the claim that is under way.
	settling          int              // How many ends have a call of their own that is under way.
	polling, stopping bool
	wake              chan struct{} // A slot is free.
	settle            chan struct{} // There are ends.
	paced             chan struct{} // A claim has said how often to beat.
}

// Run works until ctx ends, or a daemon refuses the worker. Each call of it is a worker with a name of its own.
func Run(ctx context.Context, options Options, handle Handler) error {
	w := &worker{Options: options, handle: handle, lease: 15 * time.Second, beat: 5 * time.Second}
	w.running, w.wake, w.settle = map[string]*Job{}, make(chan struct{}, 1), make(chan struct{}, 1)
	w.paced = make(chan struct{}, 1)
	if w.Concurrency < 1 {
		w.Concurrency = 10
	}
	if w.Wait == 0 {
		w.Wait = 20 * time.Second
	}
	if w.Grace == 0 {
		w.Grace = 25 * time.Second
	}
	if w.Label == "" {
		w.Label = "go"
	}
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return err
	}
	w.line = line{urls: w.URLs, queue: w.Queue, token: w.Token, pid: os.Getpid()}
	w.line.name = fmt.Sprintf("h-%s-%s", w.Label, hex.EncodeToString(random))
	claiming, stopClaims := context.WithCancel(ctx)
	living, die := context.WithCancel(context.Background())
	defer die()
	failed := make(chan error, 3)
	go func() { failed <- w.claimAll(claiming, living) }()
	go func() { failed <- w.settleAll(living) }()
	go func() { failed <- w.beatAll(living) }()
	var failure error
	select {
	case <-ctx.Done():
	case failure = <-failed:
	}
	stopClaims()
	if err := w.leave(living, failure == nil); failure == nil {
		return err
	}
	return failure
}

func (w *worker) leave(ctx context.Context, isWelcome bool) error {
	for until := time.Now().Add(w.Grace); w.count() > 0 && time.Now().Before(until); {
		time.Sleep(20 * time.Millisecond)
	}
	w.mu.Lock()
	for _, job := range w.running {
		job.end(ErrShutdown)
	}
	// Nobody has read yet what became of these; told twice is fine.
	w.ends, w.claimed, w.stopping = append(w.ends, w.claimed...), nil, true
	w.mu.Unlock()
	if !isWelcome {
		return nil
	}
	w.tell(w.settle)
	for until := time.Now().Add(10 * time.Second); w.untold() > 0 && time.Now().Before(until); {
		time.Sleep(20 * time.Millisecond)
	}
	return w.call(ctx, "leave", map[string]any{}, nil, 5)
}

// How many ends no daemon has answered yet.
func (w *worker) untold() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.ends) + w.settling
}

func (w *worker) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.running)
}

func (w *worker) claimAll(ctx, living context.Context) error {
	for seq := 1; ; seq++ {
		for w.count() >= w.Concurrency {
			select {
			case <-ctx.Done():
				return nil
			case <-w.wake:
			}
		}
		w.mu.Lock()
		w.claimed, w.polling = w.takeEnds(), true
		body := map[string]any{"seq": seq, "max": least(runsMax, w.Concurrency-len(w.running)), "running": len(w.running),
			"wait": w.Wait.Milliseconds(), "ends": append([]map[string]any{}, w.claimed...)}
		w.mu.Unlock()
		w.tell(w.settle)
		sent := time.Now()
		var answer struct {
			Jobs            []*Job
			LeaseMs, BeatMs int64
		}
		err := w.call(ctx, "claim", body, &answer, 0)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		w.mu.Lock()
		w.claimed, w.polling = nil, false
		w.lease = time.Duration(answer.LeaseMs) * time.Millisecond
		w.beat = time.Duration(answer.BeatMs) * time.Millisecond
		w.mu.Unlock()
		w.tell(w.paced)
		w.beginAll(living, answer.Jobs, sent)
	}
}

func (w *worker) beginAll(ctx context.Context, jobs []*Job, sent time.Time) {
	contexts := make([]context.Context, len(jobs))
	for at, job := range jobs {
		job.until = sent.Add(w.lease)
		contexts[at], job.stop = context.WithCancel(ctx)
	}
	// An answer that was read late: what is still ours is asked first.
	kept := make([]string, 0)
	isLate := len(jobs) > 0 && time.Since(sent) > w.lease/2
	if isLate {
		kept = w.beatFor(ctx, jobs, 3)
	}
	for at, job := range jobs {
		if isLate && (at >= len(kept) || kept[at] != "ok") {
			continue
		}
		w.mu.Lock()
		w.running[job.Run] = job
		w.mu.Unlock()
		go w.run(contexts[at], job)
	}
}

func (w *worker) run(ctx context.Context, job *Job) {
	defer func() {
		w.mu.Lock()
		delete(w.running, job.Run)
		w.mu.Unlock()
		w.tell(w.wake)
		w.tell(w.settle)
	}()
	if job.Begin {
		var answer struct{ Result string }
		err := w.call(ctx, "begin", map[string]any{"run": job.Run}, &answer, 0)
		if err != nil || (answer.Result != "ok" && answer.Result != "already") {
			return
		}
	}
	end := w.endOf(ctx, job)
	why := job.Stopped()
	// What is not ours any more, and what goes back at a stop, is not settled.
	if why == ErrLeaseLost || why == ErrTimeout || (why == ErrShutdown && end["end"] != "complete") {
		return
	}
	end["run"] = job.Run
	job.mu.Lock()
	if turns, ok := job.told["spent"]; ok {
		end["spent"] = turns
	}
	job.mu.Unlock()
	w.mu.Lock()
	w.ends = append(w.ends, end)
	w.mu.Unlock()
}

func (w *worker) endOf(ctx context.Context, job *Job) (end map[string]any) {
	defer func() {
		if thrown := recover(); thrown != nil {
			end = map[string]any{"end": "fail", "error": fmt.Sprint(thrown), "kind": "panic"}
		}
	}()
	result, err := w.handle(ctx, job)
	if err == nil {
		if _, unfit := json.Marshal(result); result == nil || unfit != nil {
			return map[string]any{"end": "complete"}
		}
		return map[string]any{"end": "complete", "result": result}
	}
	end = map[string]any{"end": "fail"}
	var asked outcome
	if errors.As(err, &asked) {
		for name, value := range asked.fields {
			end[name] = value
		}
	}
	if end["end"] == "fail" {
		end["error"] = err.Error()
	}
	return end
}

// Ends go with the next claim; while one waits, or none comes any more, they have a call of their own.
func (w *worker) settleAll(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.settle:
		}
		w.mu.Lock()
		var ends []map[string]any
		if w.polling || w.stopping {
			ends = w.takeEnds()
		}
		w.settling = len(ends)
		w.mu.Unlock()
		if len(ends) == 0 {
			continue
		}
		if err := w.call(ctx, "settle", map[string]any{"runs": ends}, nil, 0); err != nil && ctx.Err() == nil {
			return err
		}
		w.mu.Lock()
		w.settling = 0
		w.mu.Unlock()
		w.tell(w.settle)
	}
}

func least(one, other int) int {
	if one < other {
		return one
	}
	return other
}

func (w *worker) takeEnds() []map[string]any {
	n := least(runsMax, len(w.ends))
	ends := w.ends[:n]
	w.ends = append([]map[string]any{}, w.ends[n:]...)
	return ends
}

func (w *worker) tell(channel chan struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}

func (w *worker) beatAll(ctx context.Context) error {
	for last, hurry := time.Now(), time.Duration(1); ; {
		w.mu.Lock()
		rest := w.beat / hurry
		w.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-w.paced:
			continue
		case <-time.After(time.Until(last.Add(rest))):
		}
		last, hurry = time.Now(), 1
		w.mu.Lock()
		jobs := make([]*Job, 0, len(w.running))
		for _, job := range w.running {
			if !job.Begin {
				jobs = append(jobs, job)
			}
		}
		w.mu.Unlock()
		for ; len(jobs) > 0; jobs = jobs[least(runsMax, len(jobs)):] {
			some := jobs[:least(runsMax, len(jobs))]
			if len(w.beatFor(ctx, some, 1)) < len(some) {
				hurry = 10
			}
		}
	}
}

// Extends leases by what is answered. Those whose lease ran out meanwhile are told.
func (w *worker) beatFor(ctx context.Context, jobs []*Job, tries int) []string {
	runs := make([]map[string]any, len(jobs))
	for at, job := range jobs {
		runs[at] = map[string]any{"run": job.Run}
		job.mu.Lock()
		for name, value := range job.told {
			runs[at][name] = value
		}
		job.mu.Unlock()
	}
	sent := time.Now()
	var answer struct{ Results []string }
	_ = w.call(ctx, "beat", map[string]any{"runs": runs}, &answer, tries)
	reasons := map[string]error{"cancel": ErrCancelled, "fenced": ErrLeaseLost, "gone": ErrLeaseLost, "timeout": ErrTimeout}
	for at, word := range answer.Results {
		if word == "ok" || word == "cancel" {
			jobs[at].until = sent.Add(w.lease)
		}
		if why := reasons[word]; why != nil {
			jobs[at].end(why)
		}
	}
	for _, job := range jobs {
		if time.Now().After(job.until) {
			job.end(ErrLeaseLost)
		}
	}
	return answer.Results
}
