package main

import (
	"bytes"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// read adds the events of a recorded `go test -json`.
func read(t *testing.T, tally *tally, from io.Reader, w io.Writer) {
	t.Helper()
	if err := readEvents(from, func(e event) { tally.add(e, w) }); err != nil {
		t.Fatal(err)
	}
}

var update = flag.Bool("update", false, "rewrite the expected report")

// TestReport processes a recorded `go test -json` over packages that pass, fail, race, skip, panic, exit, leak after
// their tests, do not build, and have no tests.
func TestReport(t *testing.T) {
	transcript, err := os.Open(filepath.Join("testdata", "go_test.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer transcript.Close()
	var got bytes.Buffer
	tally := newTally()
	read(t, tally, transcript, &got)
	tally.addFuzz(&got, "example.org/owner/sample/fuzzy", "FuzzFine", 2*time.Second, "")
	tally.addFuzz(&got, "example.org/owner/sample/fuzzy", "FuzzCrash", time.Second,
		"Failing input written to testdata/fuzz/FuzzCrash/1\n")
	tally.report(&got, 26*time.Second, 10)

	path := filepath.Join("testdata", "report.txt")
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the report differs from %s (-update rewrites it):\n%s", path, got.String())
	}
	if tally.ok() {
		t.Error("expected failed tests to make the run fail")
	}
}

func TestVerdict(t *testing.T) {
	tests := []struct {
		name, events, wantEnd string
		wantOK                bool
	}{
		{
			name:    "no test ran",
			events:  `{"Action":"skip","Package":"example.org/owner/sample/none"}`,
			wantEnd: "no test ran\ntook 0s\n0 passed, 0 failed, 0 skipped\n",
		},
		{
			name: "only skipped",
			events: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:7: needs root: expected uid 0\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p"}`,
			wantEnd: "skipped 1: needs root: expected uid 0\n  p.TestA\ntook 0s\n0 passed, 0 failed, 1 skipped\n",
		},
		{
			name: "passed, after words of the Go command",
			events: `go: downloading example.org/x v1.0.0
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p"}`,
			wantEnd: "1 passed, 0 failed, 0 skipped\n",
			wantOK:  true,
		},
		{
			name: "timed out with a test under way",
			events: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"fail","Package":"p"}`,
			wantEnd: "failed:\n  p (outside its tests)\ntook 0s\n1 passed, 1 failed, 0 skipped\n",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			tally := newTally()
			read(t, tally, strings.NewReader(test.events), &out)
			tally.report(&out, 0, 10)
			if !strings.HasSuffix(out.String(), test.wantEnd) {
				t.Errorf("expected the report to end with\n%s\ngot\n%s", test.wantEnd, out.String())
			}
			if tally.ok() != test.wantOK {
				t.Errorf("expected ok %v, got %v", test.wantOK, tally.ok())
			}
		})
	}
}

func TestFuzzTestsOfAPackage(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"a_test.go": `package a
import "testing"
func FuzzParse(f *testing.F) {}
func FuzzHelper(t *testing.T, f *testing.F) {}
func (receiver) FuzzMethod(f *testing.F) {}
func TestFuzz(f *testing.F) {}
// func FuzzComment(f *testing.F) {}
`,
		"b_test.go": `package a_test
import "testing"
func FuzzOutside(f *testing.F) {}
`,
		"c_test.go": "package a\n",
	}
	for name, source := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := testPackage{Dir: dir, TestGoFiles: []string{"a_test.go", "c_test.go"}, XTestGoFiles: []string{"b_test.go"}}
	got, err := p.fuzzTests()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"FuzzParse", "FuzzOutside"}; !slices.Equal(got, want) {
		t.Errorf("expected %v, got %v", want, got)
	}
}

func TestLongTests(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"a_test.go": `package a
import ("testing"; "example.org/test/long")
func TestSlow(t *testing.T) { long.Test(t) }
func TestQuick(t *testing.T) { other.Test(t) }
func helper(t *testing.T) { long.Test(t) }
func TestNested(t *testing.T) { if true { long.Test(t) } }
`,
		"b_test.go": "package a\nfunc TestPlain(t *testing.T) {}\n",
	}
	for name, source := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	slow := testPackage{ImportPath: "slow", Dir: dir, TestGoFiles: []string{"a_test.go", "b_test.go"}}
	quick := testPackage{ImportPath: "quick", Dir: dir, TestGoFiles: []string{"b_test.go"}}
	packages, names, err := longTests([]testPackage{slow, quick})
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) != 1 || packages[0].ImportPath != "slow" ||
		!slices.Equal(names, []string{"TestSlow", "TestNested"}) {
		t.Errorf("found %v in %v, expected TestSlow and TestNested in the package slow", names, packages)
	}
}

// TestNoOtherShortTests checks that only package long calls testing.Short: no target of the Makefile would run other
// tests that do.
func TestNoOtherShortTests(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && path != root || entry.Name() == "node_modules"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go") || filepath.Dir(path) == filepath.Join(root, "test", "suite"):
			return nil
		}
		source, err := os.ReadFile(path)
		if bytes.Contains(source, []byte("testing.Short()")) {
			t.Errorf("%s calls testing.Short, expected long.Test", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSplitByPlace checks that only tests of whole programs have the machine to themselves, and that every light
// package exists.
func TestSplitByPlace(t *testing.T) {
	var packages []testPackage
	for _, path := range []string{"pkg/payload", "test/e2e", "test/lint", "test/interop", "test/interop/oldpeer",
		"test/browser", "lab/test/faults"} {
		packages = append(packages, testPackage{ImportPath: "example.org/owner/module/" + path})
	}
	together, groups := splitByPlace(packages)
	if got := len(together); got != 3 {
		t.Errorf("%d packages are tested together, expected payload, lint and oldpeer: %v", got, together)
	}
	if len(groups[ofLab]) != 1 || len(groups[ofBrowser]) != 1 || len(groups[others]) != 2 {
		t.Errorf("expected faults, browser, and e2e with interop in three groups, got %v", groups)
	}
	for _, name := range light {
		if _, err := os.Stat(filepath.Join("..", name)); err != nil {
			t.Error(err)
		}
	}
}

// TestSlowFirst: slow packages come first, in the order of the list, and all of them exist.
func TestSlowFirst(t *testing.T) {
	const module = "example.org/owner/module/"
	packages := []testPackage{{ImportPath: module + "pkg/a"}, {ImportPath: module + slow[1]},
		{ImportPath: module + slow[0]}, {ImportPath: module + "pkg/b"}}
	slowFirst(packages)
	var got []string
	for _, p := range packages {
		got = append(got, shortName(p.ImportPath))
	}
	if want := []string{slow[0], slow[1], "pkg/a", "pkg/b"}; !slices.Equal(got, want) {
		t.Errorf("got %v, expected %v", got, want)
	}
	for _, name := range slow {
		if _, err := os.Stat(filepath.Join("..", "..", name)); err != nil {
			t.Error(err)
		}
	}
}

func TestTakeUnraced(t *testing.T) {
	tally := newTally()
	events := `{"Action":"output","Package":"e.org/o/m/a","Test":"TestA/sub","Output":"    a_test.go:7: race detector"}
{"Action":"skip","Package":"e.org/o/m/a","Test":"TestA/sub"}
{"Action":"output","Package":"e.org/o/m/b","Test":"TestB","Output":"    b_test.go:7: needs root\n"}
{"Action":"skip","Package":"e.org/o/m/b","Test":"TestB"}
{"Action":"pass","Package":"e.org/o/m/a"}
{"Action":"pass","Package":"e.org/o/m/b"}`
	read(t, tally, strings.NewReader(events), io.Discard)
	again := tally.unraced([]string{"-p=1"})
	if len(again) != 1 || !slices.Equal(again[0].paths, []string{"e.org/o/m/a"}) ||
		!slices.Equal(again[0].flags, []string{"-p=1", "-run=^(TestA)$"}) {
		t.Errorf("to run again: %v, expected TestA of the package a", again)
	}
	if len(tally.unraced(nil)) != 0 {
		t.Error("a test would run a third time")
	}
	if tally.skipped != 1 || len(tally.skips) != 1 {
		t.Errorf("%d tests are skipped, for %d reasons, expected only TestB", tally.skipped, len(tally.skips))
	}
}

func TestTestdataFolder(t *testing.T) {
	module := t.TempDir()
	there := filepath.Join(module, "there")
	if err := os.Mkdir(there, 0o700); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, given, want, wantSaid string }{
		{"relative to the module", "there", there, "test data: " + there},
		{"absolute", there, there, "test data: " + there},
		{"absent", "elsewhere", "elsewhere", "not found at " + filepath.Join(module, "elsewhere")},
		{"unset", "", "", "not found at " + filepath.Join(filepath.Dir(module), "shared", "data")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv(testdataVariable, test.given)
			var said bytes.Buffer
			if err := findTestdata(module, &said); err != nil {
				t.Fatal(err)
			}
			if got := os.Getenv(testdataVariable); got != test.want {
				t.Errorf("expected %s=%q, got %q", testdataVariable, test.want, got)
			}
			if !strings.Contains(said.String(), test.wantSaid) {
				t.Errorf("expected %q in %q", test.wantSaid, said.String())
			}
		})
	}
}

// TestLanes runs two lanes at the same time: one passes, the other fails a test.
func TestLanes(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module example.org/owner/sample\n\ngo 1.24\n",
		"a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n",
		"b/b_test.go": "package b\n\nimport \"testing\"\n\nfunc TestB(t *testing.T) { t.Error(1) }\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "")
	var out bytes.Buffer
	tally := newTally()
	err := runLanes(t.Context(), tally, &out, "both", lane{{paths: []string{"./a"}, note: ", noted"}, {}},
		lane{{paths: []string{"./b"}}})
	if err != nil {
		t.Fatalf("%v:\n%s", err, out.String())
	}
	if tally.passed != 1 || tally.failed != 1 || len(tally.spans) != 2 {
		t.Errorf("%d passed, %d failed, %d packages, expected 1, 1 and 2:\n%s", tally.passed, tally.failed,
			len(tally.spans), out.String())
	}
	if !strings.Contains(out.String(), "1 passed, noted\n") || !strings.Contains(out.String(), "\nboth: ") {
		t.Errorf("no note, or no time of both lanes in\n%s", out.String())
	}
	if err := runLanes(t.Context(), newTally(), io.Discard, "none", lane{{flags: []string{"-p=none"},
		paths: []string{"./a"}}}); err == nil {
		t.Error("expected an error for a flag that does not exist")
	}
	path := filepath.Join(dir, "timeline")
	if err := tally.writeTimeline(path); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || strings.Count(string(text), "\n") != 2 {
		t.Errorf("the timeline is %q, %v, expected two lines", text, err)
	}
}
