package fuzzing

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab/suite"
	"github.com/volsfu/volsfu/test/fuzz"
)

var pair = []target{{path: "a", tests: []string{"FuzzOne", "FuzzTwo"}}, {path: "b", tests: []string{"FuzzThree"}}}

// TestTurns: the package with the test of the least time is next, and failed tests have no turn.
func TestTurns(t *testing.T) {
	s := state{}
	for i, step := range []struct {
		test, failure, want string
		seconds             int
	}{
		{"", "", "a", 0},
		{"a.FuzzOne", "", "a", 10},
		{"a.FuzzTwo", "", "b", 10},
		{"b.FuzzThree", "", "a", 20},
		{"a.FuzzOne", "crash", "a", 5},
		{"a.FuzzTwo", "", "b", 50},
		{"b.FuzzThree", "crash", "a", 1},
		{"a.FuzzTwo", "crash", "", 1},
	} {
		if step.test != "" {
			o := fuzz.Outcome{Inputs: 100, Processor: 2 * time.Second, Failure: step.failure}
			s.add(step.test, o, time.Duration(step.seconds)*time.Second)
		}
		got := ""
		if next := s.next(pair); next != nil {
			got = next.path
		}
		if got != step.want {
			t.Errorf("step %d: next is %q, expected %q", i, got, step.want)
		}
	}
	s.add("removed.FuzzOld", fuzz.Outcome{Inputs: 1000, Failure: "crash"}, time.Second)
	total, failures := s.sum(pair)
	if total.Inputs != 700 || total.Seconds != 97 || total.Processor != 14 ||
		!slices.Equal(failures, []string{"a.FuzzOne", "a.FuzzTwo", "b.FuzzThree"}) {
		t.Errorf("got %+v and %v", total, failures)
	}
}

// TestContinues: counts are read again, and a broken file is an error instead of a new beginning.
func TestContinues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counts.json")
	s, err := readState(path)
	if err != nil || len(s) != 0 {
		t.Fatalf("got %v, %v, expected no counts of a file that does not exist", s, err)
	}
	s.add("a.FuzzOne", fuzz.Outcome{Inputs: 1 << 40, Processor: time.Second}, 3*time.Second/2)
	if err := s.write(path); err != nil {
		t.Fatal(err)
	}
	again, err := readState(path)
	if err != nil || !reflect.DeepEqual(again, s) {
		t.Errorf("got %v, %v, expected %v", again, err, s)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readState(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a broken file: got %v", err)
	}
}

// TestTargets: tests of network bytes are found, and each exception exists.
func TestTargets(t *testing.T) {
	tree, err := suite.SourceTree("", "test/fuzz")
	if err != nil {
		t.Skipf("skipped: %v", err)
	}
	packages, err := list(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	chosen := 0
	for i := range packages {
		p := &packages[i]
		names = append(names, p.path)
		for _, test := range p.tests {
			names = append(names, p.name(test))
		}
	}
	for _, other := range others {
		// Packages of cameras are absent where their libraries are not installed.
		if !slices.Contains(names, other) && !strings.HasPrefix(other, "pkg/codec/draco") &&
			!strings.HasPrefix(other, "clients/c") {
			t.Errorf("%s is listed, but has no fuzz test", other)
		}
	}
	for _, want := range []string{"internal/description.FuzzParse", "internal/srtp.FuzzOpen",
		"pkg/payload.FuzzReassembler", "pkg/signal.FuzzDecodeFromClient", "test/chaos.FuzzDemultiplexer"} {
		found := false
		for _, target := range network(packages) {
			for _, test := range target.tests {
				found = found || target.name(test) == want
			}
		}
		if !found {
			t.Errorf("%s is not among the fuzz tests of network bytes", want)
		}
	}
	for _, target := range network(packages) {
		chosen += len(target.tests)
	}
	t.Logf("%d fuzz tests of network bytes", chosen)
}
