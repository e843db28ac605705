package fuzz

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// interruptPatience is the time for a command to end after an interrupt.
const interruptPatience = 10 * time.Second

// Build builds the instrumented binary of a package's tests, which "go test -fuzz" would link for each fuzz test. Build
// runs in the folder dir, of a module that has the package or of a workspace. The error has the compiler's output.
func Build(ctx context.Context, dir, importPath, binary string) error {
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-fuzz=.", "-o", binary, importPath)
	build.Dir = dir
	build.Cancel = func() error { return build.Process.Signal(os.Interrupt) }
	build.WaitDelay = interruptPatience
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%s%w", output, err)
	}
	return nil
}

// Corpora returns the folder in which "go test -fuzz" keeps the inputs found for all packages; the inputs of a package
// are in the folder of its import path. "go clean -fuzzcache" empties it.
func Corpora(ctx context.Context) (string, error) {
	output, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOCACHE: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(output)), "fuzz"), nil
}

// Run is one run of a fuzz test.
type Run struct {
	// Binary is the binary of Build, Dir the folder of the package, and Test the name of the fuzz test.
	Binary, Dir, Test string
	// Corpus is the folder of the inputs that the package's fuzz tests found.
	Corpus string
	// Time is the fuzzing time.
	Time time.Duration
}

// grace is the time that a run may take in addition to the fuzzing time: for starting workers, running the seeds, and
// minimising a failing input, for which the testing package allows a minute.
const grace = 2 * time.Minute

// Outcome is the result of a run.
type Outcome struct {
	// Inputs is the number of inputs executed, seeds included.
	Inputs int64
	// Processor is the processor time of the run, of all its workers.
	Processor time.Duration
	// Failure is the output of a failed run, empty after a run without a failure.
	Failure string
}

// Execute runs the fuzz test. An interrupted run is a failure.
func (r Run) Execute(ctx context.Context) Outcome {
	ctx, cancel := context.WithTimeout(ctx, r.Time+grace)
	defer cancel()
	command := exec.CommandContext(ctx, r.Binary, "-test.run=^$", "-test.fuzz=^"+r.Test+"$",
		"-test.fuzztime="+r.Time.String(), "-test.fuzzminimizetime=10x", "-test.fuzzcachedir="+r.Corpus)
	command.Dir = r.Dir
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = interruptPatience
	output, err := command.CombinedOutput()
	o := outcomeOf(string(output), err)
	if state := command.ProcessState; state != nil {
		o.Processor = state.UserTime() + state.SystemTime()
	}
	return o
}

// outcomeOf reads the output and the status of a fuzz test.
func outcomeOf(output string, status error) Outcome {
	o := Outcome{Inputs: inputs(output)}
	if status != nil && !onlyTimeEnded(output) {
		o.Failure = fmt.Sprintf("%s%v\n", output, status)
	}
	return o
}

// executions is the number of inputs so far in a line of progress of the testing package.
var executions = regexp.MustCompile(`(?m)^fuzz: elapsed: .*, execs: (\d+) `)

// inputs returns the number of inputs in the last line of progress.
func inputs(output string) int64 {
	all := executions.FindAllStringSubmatch(output, -1)
	if len(all) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(all[len(all)-1][1], 10, 64) // digits; saturates
	return n
}

var deadlineOnly = regexp.MustCompile(`(?m)^--- FAIL: \w+ \([\d.]+s\)\n {4}context deadline exceeded\nFAIL\n`)

// onlyTimeEnded reports whether a fuzz test failed only because the time was over. Go before 1.27 reports this as a
// failure when a worker ends at the deadline (go.dev/issue/75804); the output would name a failing input.
func onlyTimeEnded(output string) bool {
	return deadlineOnly.MatchString(output) && !strings.Contains(output, "Failing input written")
}
