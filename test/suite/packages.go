package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// testPackage is what `go list` tells of a package.
type testPackage struct {
	ImportPath   string
	Dir          string
	TestGoFiles  []string // of the package itself, by this machine's build constraints
	XTestGoFiles []string // of its external test package
}

// goCommand returns the Go command with these arguments. Interrupting the context interrupts the command, so that it cleans up.
func goCommand(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", args...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	command.Stderr = os.Stderr
	return command
}

func goOutput(ctx context.Context, args ...string) (string, error) {
	out, err := goCommand(ctx, args...).Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// listPackages returns the packages that the patterns match, broken ones too: testing them reports what is wrong.
func listPackages(ctx context.Context, patterns []string) ([]testPackage, error) {
	out, err := goOutput(ctx, append([]string{"list", "-e", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles"}, patterns...)...)
	if err != nil {
		return nil, err
	}
	var packages []testPackage
	for decoder := json.NewDecoder(strings.NewReader(out)); ; {
		var p testPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("output of go list: %w", err)
		}
		packages = append(packages, p)
	}
}

// runTests tests the packages and adds what happens to the tally. A test that fails is no error.
func runTests(ctx context.Context, tally *tally, w io.Writer, timeout time.Duration, packages []testPackage, flags ...string) error {
	if len(packages) == 0 {
		return nil
	}
	// vet is lint's; a cached result would not be a run.
	args := append([]string{"test", "-race", "-json", "-vet=off", "-count=1", "-timeout=" + timeout.String()}, flags...)
	for _, p := range packages {
		args = append(args, p.ImportPath)
	}
	command := goCommand(ctx, args...)
	events, err := command.StdoutPipe()
	if err != nil {
		return fmt.Errorf("go test: %w", err)
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("go test: %w", err)
	}
	failedBefore := tally.failed
	readErr := tally.read(events, w)
	waitErr := command.Wait()
	if readErr != nil {
		return fmt.Errorf("output of go test: %w", readErr)
	}
	// Go test exits with an error when a test failed. Without a failure in its events the error is its own.
	if waitErr != nil && tally.failed == failedBefore {
		return fmt.Errorf("go test: %w", waitErr)
	}
	return nil
}

// fuzzTests returns the names of the native fuzz tests in the package's files, in order of appearance.
func (p testPackage) fuzzTests() ([]string, error) {
	var names []string
	for _, file := range append(append([]string(nil), p.TestGoFiles...), p.XTestGoFiles...) {
		path := filepath.Join(p.Dir, file)
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(source, []byte("testing.F")) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, declaration := range parsed.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && isFuzzTest(f) {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names, nil
}

// isFuzzTest reports whether f is a func FuzzName(*testing.F).
func isFuzzTest(f *ast.FuncDecl) bool {
	if f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Fuzz") || len(f.Type.Params.List) != 1 {
		return false
	}
	pointer, ok := f.Type.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	selector, ok := pointer.X.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == "F"
}
