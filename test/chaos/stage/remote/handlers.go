// The handlers of the workload, as handlers.mjs has them, of a worker over HTTP: their only effect is a line in the log of effects.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	duestream "github.com/duestream/duestream/clients/go"
)

const clockMonotonic = 1

// The clock that all processes of a machine share.
func monotonicUs() int64 {
	var now syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano() / 1000
}

func main() {
	log, err := os.OpenFile(os.Getenv("CHAOS_EFFECTS"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		panic(err)
	}
	slots, _ := strconv.Atoi(os.Getenv("CHAOS_SLOTS"))
	options := duestream.Options{URLs: strings.Split(os.Getenv("CHAOS_DAEMONS"), ","), Queue: "chaos", Concurrency: slots}
	fmt.Println(`{"msg":"started"}`)
	err = duestream.Run(context.Background(), options, func(ctx context.Context, job *duestream.Job) (any, error) {
		return nil, handle(ctx, job, log)
	})
	fmt.Println("over", err)
	os.Exit(1)
}

func handle(ctx context.Context, job *duestream.Job, log *os.File) error {
	note := func(ev, how string) {
		line, _ := json.Marshal(map[string]any{
			"ev": ev, "how": how, "us": monotonicUs(), "ms": time.Now().UnixMilli(), "actor": os.Getenv("CHAOS_ACTOR"), "pid": os.Getpid(),
			"id": job.ID, "token": job.Token, "attempt": job.Attempt, "due": job.DueMs, "crashes": job.Crashes, "failures": job.Failures,
		})
		log.Write(append(line, '\n'))
	}
	var wish struct {
		Kind   string
		WorkMs int
	}
	if err := json.Unmarshal(job.Data, &wish); err != nil {
		return duestream.Fatal(err)
	}
	note("start", "")
	select {
	case <-time.After(time.Duration(wish.WorkMs) * time.Millisecond):
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		note("finish", "aborted")
		return job.Stopped()
	}
	if wish.Kind == "poison" || (wish.Kind == "crash" && job.Crashes == 0) {
		note("crash", "")
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	if wish.Kind == "throw" && job.Failures == 0 {
		note("finish", "error")
		return errors.New("planned")
	}
	note("effect", "")
	note("finish", "ok")
	return nil
}
