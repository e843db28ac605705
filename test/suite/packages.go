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
	"slices"
	"strings"
	"time"

	"github.com/volsfu/volsfu/test/fuzz"
)

// testPackage is the output of `go list` for a package.
type testPackage struct {
	ImportPath   string
	Dir          string
	TestGoFiles  []string // of the package itself, by this machine's build constraints
	XTestGoFiles []string // of its external test package
}

// goCommand returns the Go command with these arguments. Interrupting the context interrupts the command, so that the
// command cleans up.
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

// listPackages returns the packages that the patterns match, including broken ones: testing a broken package reports
// the error.
func listPackages(ctx context.Context, patterns []string) ([]testPackage, error) {
	out, err := goOutput(ctx, append([]string{"list", "-e", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles"},
		patterns...)...)
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

// importPaths returns the import paths of packages.
func importPaths(packages []testPackage) []string {
	paths := make([]string, 0, len(packages))
	for _, p := range packages {
		paths = append(paths, p.ImportPath)
	}
	return paths
}

// anyOf returns the regular expression that matches the named tests.
func anyOf(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }

// longTests returns the packages that have long tests, and the names of these tests.
func longTests(packages []testPackage) (found []testPackage, names []string, err error) {
	for _, p := range packages {
		ofPackage, err := p.longTests()
		if err != nil {
			return nil, nil, err
		}
		if len(ofPackage) > 0 {
			found, names = append(found, p), append(names, ofPackage...)
		}
	}
	return found, names, nil
}

// callsLongTest reports whether f is a func TestName that calls long.Test.
func callsLongTest(f *ast.FuncDecl) (calls bool) {
	if f.Recv != nil || f.Body == nil || !strings.HasPrefix(f.Name.Name, "Test") {
		return false
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if selector, ok := call.Fun.(*ast.SelectorExpr); ok && selector.Sel.Name == "Test" {
				of, ok := selector.X.(*ast.Ident)
				calls = calls || ok && of.Name == "long"
			}
		}
		return !calls
	})
	return calls
}

// fuzzTests returns the names of the native fuzz tests in the package's files, in order of appearance.
func (p testPackage) fuzzTests() ([]string, error) {
	var names []string
	for _, file := range p.files() {
		more, err := fuzz.Tests(file)
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
	}
	return names, nil
}

// files returns the paths of the package's test files.
func (p testPackage) files() []string {
	var paths []string
	for _, file := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
		paths = append(paths, filepath.Join(p.Dir, file))
	}
	return paths
}

// longTests returns the names of the long tests in the package's files, in order of appearance. Files without a call of
// long.Test are not parsed.
func (p testPackage) longTests() ([]string, error) {
	var names []string
	for _, path := range p.files() {
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(source, []byte("long.Test(")) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, declaration := range parsed.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && callsLongTest(f) {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names, nil
}
