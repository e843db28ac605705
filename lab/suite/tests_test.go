package suite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const testsPath = "test/some"

// plant makes a source tree with one file of tests.
func plant(t *testing.T, test string) string {
	t.Helper()
	tree := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(tree, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module "+module+"\n\ngo 1.21\n")
	write(testsPath+"/some_test.go", test)
	return tree
}

const planted = `package some

import (
	"flag"
	"testing"
)

var full = flag.Bool("full", false, "")

func TestFigures(t *testing.T) {
	t.Log("figure: {\"name\":\"lost\",\"figure\":0,\"target\":\"= 0\",\"met\":true}")
	if !*full {
		t.Error("the flag is not set")
	}
}

func TestMissing(t *testing.T) { t.Skip("skipped: no data") }

func TestFailing(t *testing.T) { t.Error("it is broken") }
`

// TestTests runs tests of a prepared source tree, from a folder in it.
func TestTests(t *testing.T) {
	tree := plant(t, planted)
	below := filepath.Join(tree, "cmd", "vollab")
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	check := func(patterns ...string) *Tests {
		tests := &Tests{Folder: below, Title: "planted"}
		for _, p := range patterns {
			tests.Parts = append(tests.Parts, Part{Package: testsPath, Pattern: p, Arguments: []string{"-full"},
				Limit: time.Minute, Counted: "hold"})
		}
		return tests
	}
	for _, test := range []struct {
		what  string
		check *Tests
		lines []string
		err   string
	}{
		{"figures and skips", check("Figures|Missing"), []string{"hold: 1 (target = 2: MISSED)",
			"lost: 0 (target = 0: met)", "TestMissing: skipped: no data"}, ""},
		{"two parts", check("Failing", "Figures"), []string{"hold: 0 (target = 1: MISSED)", "hold: 1 (target = 1: met)",
			"lost: 0 (target = 0: met)"}, "it is broken"},
		{"nothing", check("Nowhere"), nil, errNone.Error()},
	} {
		t.Run(test.what, func(t *testing.T) {
			lines, err := test.check.Run(t.Context())
			var got []string
			for _, l := range lines {
				got = append(got, l.String())
			}
			if !slices.Equal(got, test.lines) || (err == nil) != (test.err == "") || err != nil &&
				(!errors.Is(err, ErrTests) || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("got %q and %v, expected %q and %q", got, err, test.lines, test.err)
			}
		})
	}
}

// TestWithoutSource runs without a checkout, and without Go.
func TestWithoutSource(t *testing.T) {
	part := Part{Package: testsPath, Pattern: ".", Limit: time.Minute}
	tests := &Tests{Folder: t.TempDir(), Parts: []Part{part, part}}
	if lines, err := tests.Run(t.Context()); !errors.Is(err, ErrSource) || len(lines) > 0 ||
		strings.Count(err.Error(), "run this command in one") != 1 {
		t.Errorf("without a checkout: %v, %v", lines, err)
	}
	tests.Folder = plant(t, planted)
	t.Setenv("PATH", t.TempDir())
	if lines, err := tests.Run(t.Context()); !errors.Is(err, ErrSource) || len(lines) > 0 ||
		!strings.Contains(err.Error(), "Go command") {
		t.Errorf("without Go: %v, %v", lines, err)
	}
}

// TestInterruption: an interruption ends endless tests and all their programs.
func TestInterruption(t *testing.T) {
	tree := plant(t, `package some

import (
	"os"
	"testing"
	"time"
)

func TestEndless(t *testing.T) {
	t.Log("figure: {\"name\":\"begun\",\"figure\":1,\"met\":true}")
	_ = os.WriteFile("begun", nil, 0o600)
	time.Sleep(time.Hour)
}
`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		defer cancel()
		for begun := filepath.Join(tree, filepath.FromSlash(testsPath),
			"begun"); ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			if _, err := os.Stat(begun); err == nil {
				return
			}
		}
	}()
	tests := &Tests{Folder: tree, Parts: []Part{{Package: testsPath, Pattern: ".", Limit: time.Hour},
		{Package: testsPath, Pattern: ".", Limit: time.Hour}}}
	if _, err := tests.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, expected that it was cancelled", err)
	}
}
