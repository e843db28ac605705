package layers

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/lab"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// told is a frame as a receiver tells of it, and as its sender does: every stage takes a millisecond. The sender's clock is ahead, and was taken for miss less than that.
func told(frame int64, ahead, miss, bound time.Duration) (received, sent frametimes.Record) {
	captured := time.Unix(1_800_000_000, 0).Add(time.Duration(frame) * 33 * time.Millisecond)
	for _, r := range []*frametimes.Record{&received, &sent} {
		r.Frame = frame
		r.Clocks[frametimes.Sender] = frametimes.Clock{Source: frametimes.SourceEstimated, Offset: miss - ahead, Bound: bound}
		r.Clocks[frametimes.Server] = frametimes.Clock{Source: frametimes.SourceSystem}
		r.Clocks[frametimes.Receiver] = frametimes.Clock{Source: frametimes.SourceSystem}
	}
	for s := range frametimes.Stamp(frametimes.Stamps) {
		at := captured.Add(time.Duration(s) * time.Millisecond)
		if s.Host() == frametimes.Sender {
			received.SetLocal(s, at.Add(ahead))
			sent.SetLocal(s, at.Add(ahead))
		} else {
			received.SetLocal(s, at)
		}
	}
	return received, sent
}

func TestCompare(t *testing.T) {
	const ahead, bound = 50 * time.Millisecond, 300 * time.Microsecond
	var records []frametimes.Record
	captures := make(map[frametimes.Key]frametimes.Record)
	for i, miss := range []time.Duration{0, 100 * time.Microsecond, -200 * time.Microsecond, 400 * time.Microsecond} {
		r, own := told(int64(i), ahead, miss, bound)
		records = append(records, r)
		captures[frametimes.Key{Track: r.Track, Frame: uint32(i)}] = own
	}
	unknown, _ := told(90, ahead, 0, bound)
	unfinished, _ := told(91, ahead, 0, bound)
	unfinished.Times[frametimes.Shown], unfinished.Times[frametimes.Decoded] = 0, 0
	torn, own := told(92, ahead, 0, bound)
	torn.Times[frametimes.ServerFirstOut] = 0
	captures[frametimes.Key{Track: torn.Track, Frame: 92}] = own
	c := compare(append(records, unknown, unfinished, torn), captures, ahead, 0)
	if c.frames != 6 || c.complete != 4 || c.unknown != 1 || c.outside != 1 {
		t.Errorf("%d frames, %d complete, %d unknown, %d outside; expected 6, 4, 1, 1", c.frames, c.complete, c.unknown, c.outside)
	}
	latency := time.Duration(frametimes.Shown) * time.Millisecond
	if got := c.real.Max(); got != latency {
		t.Errorf("the latency is %v, expected %v", got, latency)
	}
	if got := c.misses.Max(); got != 400*time.Microsecond {
		t.Errorf("the layers are off by %v, expected 400 µs", got)
	}
	lines := c.lines("here")
	for name, met := range map[string]bool{
		"here: frames with every stage": false, "here: sum of the layers off the latency, 99 % of frames": false,
		"here: frames further off than the bound reported with them": false,
	} {
		i := slices.IndexFunc(lines, func(l lab.Line) bool { return l.Name == name && l.Target != "" })
		if i < 0 || lines[i].Met != met {
			t.Errorf("%s: lines are %v, expected one that is met: %v", name, lines, met)
		}
	}
	if none := (&comparison{}).lines("here"); len(none) != 1 || none[0].Met {
		t.Errorf("nothing compared gives %v, expected a target that is missed", none)
	}
}

// TestCompareExactly: where clocks are known the layers are the latency.
func TestCompareExactly(t *testing.T) {
	r, own := told(7, time.Hour, 0, 0)
	c := compare([]frametimes.Record{r}, map[frametimes.Key]frametimes.Record{{Frame: 7}: own}, time.Hour, 0)
	for _, l := range c.lines("here") {
		if l.Missed() {
			t.Error(l.String())
		}
	}
	if c.misses.Max() != 0 {
		t.Errorf("off by %v", c.misses.Max())
	}
}

func TestSettled(t *testing.T) {
	var records []frametimes.Record
	for i := range 100 {
		r, _ := told(int64(i), 0, 0, 0)
		records = append(records, r)
	}
	kept := settled(records)
	if len(kept) == 0 || kept[0].Frame != 31 || kept[len(kept)-1].Frame != 68 {
		t.Errorf("%d records are left, expected those but of the first and last second", len(kept))
	}
}

func TestStayed(t *testing.T) {
	a := &audience{frames: map[int][]int64{0: {9, 10, 10, 10, 11}, 1: {10, 10, 10, 20}}}
	for i := range 30 {
		r, _ := told(int64(i), 0, 0, 0)
		a.records = append(a.records, r)
	}
	s := a.sum(10, 12)
	if s.sent != 6 || s.arrived != 7 || s.hold.Count() != 2 {
		t.Errorf("sent %d, arrived %d, %d records; expected 6, 7 and 2", s.sent, s.arrived, s.hold.Count())
	}
	if got, want := s.hold.Max(), time.Duration(frametimes.ServerFirstOut-frametimes.ServerFirstIn)*time.Millisecond; got != want {
		t.Errorf("held for %v, expected %v", got, want)
	}
	if (&stayed{}).share() != 0 {
		t.Error("nothing sent arrives")
	}
	for _, l := range s.lines(30) {
		if strings.Contains(l.Name, "Mbit") || l.Unit == "Mbit/s" && l.Figure != 888 {
			t.Errorf("%v, expected 888 Mbit/s", l)
		}
	}
	sum := 0
	for _, part := range parts {
		sum += part
	}
	if sum != frameBytes {
		t.Errorf("the parts have %d bytes, expected %d", sum, frameBytes)
	}
}
