package clients

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/program"
)

func TestMain(m *testing.M) { os.Exit(program.Main(m)) }

func TestCell(t *testing.T) {
	for summary, want := range map[string]struct {
		failed string
		figure float64
		missed bool
	}{
		`{"frames_decoded": 40, "frames_undecodable": 0}`:            {"", 100, false},
		`{"frames_decoded": 30, "frames_undecodable": 10}`:           {"", 75, true},
		`{"frames_decoded": 30, "frames_refused": 30}`:               {"", 50, true},
		`{"frames_decoded": 3}`:                                      {"3 frames decoded, expected", 0, true},
		`nothing`:                                                    {"no summary", 0, true},
		`{"step": "watched", "frames_decoded": 40} {"step": "done"}`: {"", 100, false},
		`{"step": "page error", "message": "no worker"}`:             {"no worker", 0, true},
	} {
		line := cell("a cell", []byte(summary))
		if line.Missed() != want.missed || !strings.Contains(line.Failed, want.failed) || line.Figure != want.figure {
			t.Errorf("%s: got %+v, want %+v", summary, line, want)
		}
	}
}

// TestMatrix measures all cells except those of pages, which test/browser has. The receivers are on this host, so that
// no frame is lost.
func TestMatrix(t *testing.T) {
	long.Test(t)
	lines, err := Checks(built(t), lab.NewProgress(nil))[0].Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if line.Missed() {
			t.Errorf("%v", line)
		}
	}
}

func TestCommands(t *testing.T) {
	page := "# Title\n```sh\none\n  two\n```\ntext\n```text\nno\n```\n```sh\nthree\n```\n"
	if got := commands(page); got != "one\n  two\nthree\n" {
		t.Errorf("got %q", got)
	}
}

// TestPageFails runs pages that fail in their first or last command, and one that leaves a program running.
func TestPageFails(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: namespaces need root")
	}
	folder := t.TempDir()
	for script, works := range map[string]bool{
		"false\ntrue": false, "true\nfalse": false, "sleep 1000 &\necho done": true,
		"ls " + folder + " && touch here && [ $(ls) = here ] && ! ip link show eth0 2>/dev/null": true,
	} {
		said, err := runPage(t.Context(), script, folder, nil)
		if (err == nil) != works {
			t.Errorf("%q: %v: %s", script, err, said)
		}
	}
}

// built builds the programs for the checks.
func built(t *testing.T) Options {
	t.Helper()
	return Options{Programs: program.Build{Cgo: true}.Folder(t, "volsfu", "volpeer"), Receiving: 20 * time.Second}
}

// TestThreePeople measures three people in C# for a short time. Other tests may slow the machine down, so that only the
// lines without a time limit must be met.
func TestThreePeople(t *testing.T) {
	long.Test(t)
	lines, err := Checks(built(t), lab.NewProgress(nil))[2].Run(t.Context())
	if errors.Is(err, lab.ErrUnable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		t.Log(line)
		if line.Failed != "" || line.Missed() && line.Name == "managed memory allocated for frames in C#" {
			t.Errorf("%v", line)
		}
	}
}

func TestPeopleLines(t *testing.T) {
	const summary = `{"frames_decoded": 1800, "frames_counted": 1500, "allocated_bytes": 0, "resident_begin": 1000000,
		"resident_end": 3000000, "statistics": {"totals": {"frames_missing": 1}}}`
	lines, err := peopleLines([]byte(summary), 20*time.Second)
	if err != nil || lines[0].Missed() || lines[1].Figure != 100 || lines[3].Missed() || lines[5].Figure != 2 {
		t.Errorf("%v, %v", lines, err)
	}
	if _, err := peopleLines([]byte("nothing"), time.Second); err == nil {
		t.Error("no error without a summary")
	}
	if lines, err := peopleLines([]byte("{}"), time.Second); err != nil || !lines[0].Missed() {
		t.Errorf("%v, %v without frames", lines, err)
	}
}
