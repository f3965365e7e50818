// The program that "duestream conformance" plays its faults against: go build -o worker-probe ./probe, then
// duestream conformance --worker ./worker-probe.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	duestream "github.com/duestream/duestream/clients/go"
)

func handle(ctx context.Context, job *duestream.Job) (any, error) {
	fmt.Println("began", job.ID, job.Token)
	var data struct{ Do string }
	if err := json.Unmarshal(job.Data, &data); err != nil {
		return nil, err
	}
	switch data.Do {
	case "fail":
		return nil, errors.New("on purpose")
	case "wait":
		<-ctx.Done()
		fmt.Println("stopped", job.ID)
		return nil, job.Stopped()
	}
	return nil, nil
}

func main() {
	if os.Getenv("DUESTREAM_FORK") == "1" {
		// A process of Go has many threads, and its library cannot fork it.
		fmt.Println("no fork")
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	urls := strings.Split(os.Getenv("DUESTREAM_URLS"), ",")
	options := duestream.Options{URLs: urls, Queue: os.Getenv("DUESTREAM_QUEUE"), Concurrency: 5, Grace: 500 * time.Millisecond}
	if err := duestream.Run(ctx, options, handle); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
