package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// fuzzGrace is the time that a fuzz test may take in addition to the fuzzing time: for starting workers, running the
// seeds, and minimising a failing input, for which the testing package allows a minute.
const fuzzGrace = 2 * time.Minute

// fuzzedPackage is a package with native fuzz tests.
type fuzzedPackage struct {
	testPackage
	targets []string
}

// runFuzzTests runs each fuzz test of the packages for a while and adds the outcomes to the tally. If the tests would
// exceed the budget, each test gets an equal part; a budget of 0 means no limit.
func runFuzzTests(ctx context.Context, tally *tally, w io.Writer, packages []testPackage, each,
	budget time.Duration) error {
	var fuzzed []fuzzedPackage
	targets := 0
	for _, p := range packages {
		names, err := p.fuzzTests()
		if err != nil {
			return fmt.Errorf("looking for fuzz tests: %w", err)
		}
		if len(names) > 0 {
			fuzzed = append(fuzzed, fuzzedPackage{p, names})
			targets += len(names)
		}
	}
	if targets == 0 {
		return nil
	}
	if budget > 0 {
		each = min(each, budget/time.Duration(targets))
	}

	cache, err := goOutput(ctx, "env", "GOCACHE")
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "suite-fuzz-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)

	fmt.Fprintf(w, "\nfuzz tests: %d, %s each\n", targets, each)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for binary := range buildFuzzBinaries(ctx, scratch, fuzzed) {
		if binary.failure != "" {
			tally.addFuzz(w, binary.ImportPath, "(build)", 0, binary.failure)
			continue
		}
		for _, target := range binary.targets {
			if ctx.Err() != nil {
				break
			}
			started := time.Now()
			// The directory that `go test -fuzz` uses, so that `go clean -fuzzcache` empties it.
			corpus := filepath.Join(strings.TrimSpace(cache), "fuzz", binary.ImportPath)
			failure := fuzz(ctx, binary.path, binary.Dir, target, corpus, each)
			tally.addFuzz(w, binary.ImportPath, target, time.Since(started), failure)
		}
		if err := os.Remove(binary.path); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// fuzzBinary is the binary with the fuzz tests of a package, or the compiler's output if the build failed.
type fuzzBinary struct {
	fuzzedPackage
	path, failure string
}

// buildFuzzBinaries builds one instrumented binary per package, which `go test -fuzz` would link for each fuzz test.
// The next binary is built while the current binary is used. The channel is closed after the last binary, or when the
// context has ended.
func buildFuzzBinaries(ctx context.Context, dir string, packages []fuzzedPackage) <-chan fuzzBinary {
	built := make(chan fuzzBinary)
	go func() {
		defer close(built)
		for i, p := range packages {
			binary := fuzzBinary{fuzzedPackage: p, path: filepath.Join(dir, fmt.Sprintf("fuzz-%d.test", i))}
			build := goCommand(ctx, "test", "-c", "-vet=off", "-fuzz=.", "-o", binary.path, p.ImportPath)
			var said bytes.Buffer
			build.Stdout, build.Stderr = &said, &said
			if err := build.Run(); err != nil {
				binary.failure = fmt.Sprintf("%s%v\n", said.String(), err)
			}
			select {
			case built <- binary:
			case <-ctx.Done():
				return
			}
		}
	}()
	return built
}

// fuzz runs one fuzz test and returns the output of a failed test, else "".
func fuzz(ctx context.Context, binary, dir, target, corpus string, each time.Duration) string {
	ctx, cancel := context.WithTimeout(ctx, each+fuzzGrace)
	defer cancel()
	command := exec.CommandContext(ctx, binary,
		"-test.run=^$", "-test.fuzz=^"+target+"$", "-test.fuzztime="+each.String(), "-test.fuzzminimizetime=10x",
		"-test.fuzzcachedir="+corpus)
	command.Dir = dir
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	out, err := command.CombinedOutput()
	if err == nil || onlyTimeEnded(string(out)) {
		return ""
	}
	return fmt.Sprintf("%s%v\n", out, err)
}

var deadlineOnly = regexp.MustCompile(`(?m)^--- FAIL: \w+ \([\d.]+s\)\n {4}context deadline exceeded\nFAIL\n`)

// onlyTimeEnded reports whether a fuzz test failed only because the time was over. Go before 1.27 reports this as a
// failure when a worker ends at the deadline (go.dev/issue/75804); the output would name a failing input.
func onlyTimeEnded(output string) bool {
	return deadlineOnly.MatchString(output) && !strings.Contains(output, "Failing input written")
}

// addFuzz adds the outcome of one fuzz test: failure is the output, or "" if the test passed.
func (t *tally) addFuzz(w io.Writer, importPath, target string, took time.Duration, failure string) {
	name := shortName(importPath) + "." + target
	if failure == "" {
		t.passed++
		fmt.Fprintf(w, "%-5s %6.1fs  %s\n", "ok", took.Seconds(), name)
		return
	}
	t.failed++
	t.failures = append(t.failures, name+" (fuzzing)")
	fmt.Fprintf(w, "%-5s %6.1fs  %s\n", "FAIL", took.Seconds(), name)
	printIndented(w, failure)
}
