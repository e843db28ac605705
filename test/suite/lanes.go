package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// invocation is one `go test` of packages.
type invocation struct {
	flags, paths []string
	// note is printed with the result of each package.
	note string
}

// lane is a sequence of invocations. Lanes run at the same time, so that one uses the processors while the tests of
// another wait.
type lane []invocation

// runLanes runs lanes, adds their events to the tally, and prints how busy the processors were. No package may be in
// two lanes. A failing test is not an error.
func runLanes(ctx context.Context, tally *tally, w io.Writer, name string, lanes ...lane) error {
	began, used := time.Now(), processorTime()
	events, failures := make(chan event), make(chan error, len(lanes))
	var running sync.WaitGroup
	for _, l := range lanes {
		running.Go(func() { failures <- l.run(ctx, events) })
	}
	go func() {
		running.Wait()
		close(events)
		close(failures)
	}()
	for e := range events {
		tally.add(e, w)
	}
	var failed error
	for err := range failures {
		failed = errors.Join(failed, err)
	}
	took := time.Since(began)
	fmt.Fprintf(w, "%s: %s, processors %.0f %% busy\n\n", name, took.Round(time.Second),
		100*(processorTime()-used).Seconds()/took.Seconds()/float64(runtime.NumCPU()))
	return failed
}

// processorTime returns the time that all ended child processes have used, with their children.
func processorTime() time.Duration {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_CHILDREN, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func (l lane) run(ctx context.Context, events chan<- event) error {
	for _, i := range l {
		if err := i.run(ctx, events); err != nil {
			return err
		}
	}
	return nil
}

// run tests the packages and sends the events.
func (i invocation) run(ctx context.Context, events chan<- event) error {
	if len(i.paths) == 0 {
		return nil
	}
	// Vet is part of lint; a cached result would not be a run.
	args := slices.Concat([]string{"test", "-json", "-vet=off", "-count=1"}, i.flags, i.paths)
	command := goCommand(ctx, args...)
	output, err := command.StdoutPipe()
	if err != nil {
		return fmt.Errorf("go test: %w", err)
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("go test: %w", err)
	}
	failed := false
	readErr := readEvents(output, func(e event) {
		failed = failed || e.Action == "fail"
		e.note = i.note
		events <- e
	})
	waitErr := command.Wait()
	if readErr != nil {
		return fmt.Errorf("output of go test: %w", readErr)
	}
	// The exit status of Go test indicates a failed test or an error of the command: without a failure among the events
	// the status is an error.
	if waitErr != nil && !failed {
		return fmt.Errorf("go test: %w", waitErr)
	}
	return nil
}
