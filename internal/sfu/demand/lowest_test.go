package demand

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestLowest runs two tiles of three qualities. A line has the time in milliseconds, the needs as in
// TestSuppressionTranscripts, and after > whether each tile is reported, with ! if the state has changed.
func TestLowest(t *testing.T) {
	l := newLowest(2)
	const transcript = `
		0    nothing   > true true
		1999 nothing   > true true
		2000 nothing   > false false !
		2100 0/0       > true false !
		2200 0/1       > true false
		# The time starts again with each use.
		4100 0/0 1/2   > true false
		4200 0/1 1/2   > true false
		6199 0/1 1/0   > true true !
		6200 0/1 1/0   > false true !
		9000 0/1 1/0   > false true
	`
	for line := range strings.Lines(transcript) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		input, want, _ := strings.Cut(line, ">")
		fields := strings.Fields(input)
		var ms int
		if _, err := fmt.Sscan(fields[0], &ms); err != nil {
			t.Fatal(err)
		}
		d := needs(t, fields[1:])
		told := ""
		if l.step(start.Add(time.Duration(ms)*time.Millisecond), &d) {
			told = " !"
		}
		if got := strings.Trim(fmt.Sprint(l.taken), "[]") + told; got != strings.TrimSpace(want) {
			t.Errorf("%s\ngot %s", line, got)
		}
	}
}

// TestLowestIsDue checks that a publication is due when a tile ceases to be reported, and that the message follows.
func TestLowestIsDue(t *testing.T) {
	var queue Queue
	p := New(volumetric.PublicationRef{Publication: "body"}, 2, 3)
	p.Suppress(Config{Policy: Warm}, &queue, start)
	if p.Message().LowestTaken != nil {
		t.Error("the lowest qualities are reported to a publisher without a second path")
	}
	p.ReportLowest()
	p.Add(Need{Tracks: [2]int{3, -1}, Near: -1})
	if p.Step(start) {
		t.Error("the state has changed before a tile is unused for the hold time")
	}
	if due, want := p.Due(), start.Add(lowestHold); !due.Equal(want) {
		t.Fatalf("due at %v, expected %v", due, want)
	}
	if !p.Step(p.Due()) || !p.Due().IsZero() {
		t.Errorf("the state has not changed, or is due at %v, expected one change", p.Due())
	}
	if got := p.Message().LowestTaken; !slices.Equal(got, []bool{false, true}) {
		t.Errorf("the message has %v, expected the second tile only", got)
	}
}
