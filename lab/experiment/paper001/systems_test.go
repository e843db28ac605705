package paper001

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab/baseline"
	"github.com/volsfu/volsfu/lab/experiment"
)

// TestSystems: every system occurs in a cell, and only volsfu's systems have a note on pacing.
func TestSystems(t *testing.T) {
	for name, s := range oneWay {
		p := defaultSession()
		if p.Transport = name; p.Validate() != nil {
			t.Errorf("%s: %v", name, p.Validate())
		}
		checkNote(t, name, s)
	}
	for name, s := range bothWays {
		p := defaultDance()
		if p.System = name; p.Validate() != nil {
			t.Errorf("%s: %v", name, p.Validate())
		}
		checkNote(t, name, s)
		if asked := slices.Contains(s.server, "--suppression"); asked != (s.transport == baseline.Volsfu) {
			t.Errorf("%s: expected a demand policy for volsfu's servers only, got %q", name, s.server)
		}
	}
}

// checkNote checks the report's note on a system, and the flags behind it.
func checkNote(t *testing.T, name string, s system) {
	t.Helper()
	o := experiment.NewOutcome()
	s.note(o)
	off := slices.Contains(s.server, "--pacing")
	switch {
	case s.transport != baseline.Volsfu:
		if len(o.Notes) > 0 || off || len(s.sends) > 0 {
			t.Errorf("%s: expected no flags and notes of pacing, got %q %q %q", name, o.Notes, s.server, s.sends)
		}
	case name == volsfuUnpaced:
		if !off || !slices.Equal(s.sends, []string{"--spread", unpacedSpread, "--uplink", unpacedUplink}) ||
			len(o.Notes) != 1 || !strings.Contains(o.Notes[0], "baselines do not pace either") {
			t.Errorf("%s: expected no pacing and a note, got %q %q %q", name, o.Notes, s.server, s.sends)
		}
	case off || len(s.sends) > 0 || len(o.Notes) != 1 || !strings.Contains(o.Notes[0], "By default"):
		t.Errorf("%s: expected the default of volsfu and a note, got %q %q %q", name, o.Notes, s.server, s.sends)
	}
}

// TestSegments: only DASH accepts a segment length. The length reaches the flags of its publishers and the report.
func TestSegments(t *testing.T) {
	for _, length := range []time.Duration{0, 100 * time.Millisecond} {
		p, d := defaultSession(), defaultDance()
		p.Transport, p.Segment, d.System, d.Segment = "dash", length, "dash", length
		if err := errors.Join(p.Validate(), d.Validate()); err != nil {
			t.Errorf("%v: %v", length, err)
		}
		o, s := experiment.NewOutcome(), oneWay["dash"]
		if s.noteSegment(o, length); !slices.Equal(segmented(s, length), []string{"--segment", length.String()}) ||
			len(o.Notes) != 1 {
			t.Errorf("%v: got the flags %q and notes %q", length, segmented(s, length), o.Notes)
		}
	}
	o, s := experiment.NewOutcome(), oneWay["reflector"]
	if s.noteSegment(o, 0); len(segmented(s, 0)) > 0 || len(o.Notes) > 0 {
		t.Errorf("the reflector has the flags %q and notes %q", segmented(s, 0), o.Notes)
	}
}

// TestUnpacedSpread: a spread of 0 would be the default.
func TestUnpacedSpread(t *testing.T) {
	if spread, err := strconv.ParseFloat(unpacedSpread, 64); err != nil || spread <= 0 || spread > 0.05 {
		t.Errorf("expected a small part of the interval above 0, got %s, %v", unpacedSpread, err)
	}
}

// TestMaterial: contents of the test data are used if present, otherwise the synthetic figure.
func TestMaterial(t *testing.T) {
	data := t.TempDir()
	if err := os.Mkdir(filepath.Join(data, "desk-human"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ data, content, want string }{
		{"", contentDesk, "synthetic"},
		{data, contentDesk, "ply:" + filepath.Join(data, "desk-human")},
		{data, contentMan, "synthetic"},
	} {
		if got := materialFor(test.content, &experiment.Settings{Data: test.data},
			experiment.NewOutcome()); got.source != test.want {
			t.Errorf("%s with the data %q is %s, want %s", test.content, test.data, got.source, test.want)
		}
	}
}
