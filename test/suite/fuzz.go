package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/volsfu/volsfu/test/fuzz"
)

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

	corpora, err := fuzz.Corpora(ctx)
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
			run := fuzz.Run{Binary: binary.path, Dir: binary.Dir, Test: target,
				Corpus: filepath.Join(corpora, binary.ImportPath), Time: each}
			failure := run.Execute(ctx).Failure
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

// builtAhead is the number of binaries that may wait, so that a large one is ready when many small ones are not.
const builtAhead = 4

// buildFuzzBinaries builds one instrumented binary per package. The next binaries are built while the current binary is
// used. The channel is closed after the last binary, or when the context has ended.
func buildFuzzBinaries(ctx context.Context, dir string, packages []fuzzedPackage) <-chan fuzzBinary {
	built := make(chan fuzzBinary, builtAhead)
	go func() {
		defer close(built)
		for i, p := range packages {
			binary := fuzzBinary{fuzzedPackage: p, path: filepath.Join(dir, fmt.Sprintf("fuzz-%d.test", i))}
			if err := fuzz.Build(ctx, "", p.ImportPath, binary.path); err != nil {
				binary.failure = err.Error() + "\n"
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
