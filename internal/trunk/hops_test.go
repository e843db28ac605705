package trunk

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/forward/trace"
	"github.com/volsfu/volsfu/pkg/frametimes/clock"
	"github.com/volsfu/volsfu/test/wait"
)

// TestHopsOf divides frames into messages, each with the earliest time as its base.
func TestHopsOf(t *testing.T) {
	frames := []hop{{3, 7, 5000, 5600}, {3, 8, 4000, 3900}, {4, 8, 4000 + int64(2*time.Minute), 0}}
	for n := range maxHops {
		frames = append(frames, hop{1, uint32(n), 9000, 9001})
	}
	list := hopsOf(cloud, 2, frames)
	if len(list) != 2 {
		t.Fatalf("%d messages, expected 2", len(list))
	}
	for _, m := range list {
		if err := m.check(); err != nil || m.Depth != 2 || m.publication != cloud {
			t.Errorf("%+v: %v", m, err)
		}
	}
	if m := list[0]; m.Base != 4000 || len(m.Frames) != maxHops-1 || m.Frames[0] != [4]int64{3, 7, 1000, 600} ||
		m.Frames[1] != [4]int64{3, 8, 0, 0} {
		t.Errorf("the first message is %+v", m)
	}
	if m := list[1]; m.Base != 9000 || len(m.Frames) != 3 {
		t.Errorf("the second message is %+v", m)
	}
}

// hopAt is the hop of frame 7 of track 3 in a node, which had read it at a time in microseconds.
func hopAt(depth int, in, held int64, bound int64) *hops {
	return &hops{Depth: depth, Base: 1000 * in, hopClock: hopClock{Bound: bound},
		Frames: [][4]int64{{3, 7, 0, 1000 * held}}}
}

// TestTrails joins the hops of a frame. A line has the time in milliseconds, the hop, and the joined frames.
func TestTrails(t *testing.T) {
	type line struct {
		ms   int
		hops *hops
		want []trace.Relay
	}
	frame := func(in, held int64) []trace.Relay {
		return []trace.Relay{{Track: 3, Frame: 7, LastIn: 1000 * in, Held: time.Duration(1000 * held)}}
	}
	for name, test := range map[string]struct {
		nodes int
		lines []line
		bound int64
	}{
		"one node": {1, []line{{0, hopAt(0, 50, 6, 9), frame(50, 6)}}, 9},
		"three nodes": {3, []line{
			{0, hopAt(1, 60, 20, 5), nil},
			{100, hopAt(0, 50, 6, 9), nil},
			{101, hopAt(0, 99, 99, 99), nil}, // the same hop again
			{1999, hopAt(2, 90, 1, 3), frame(50, 27)},
			{2000, hopAt(2, 90, 1, 3), nil},
		}, 9},
		"too late": {2, []line{
			{0, hopAt(0, 50, 6, 9), nil},
			{2000, hopAt(1, 60, 20, 5), nil},
			{2100, hopAt(0, 50, 6, 9), frame(50, 26)},
		}, 9},
	} {
		var joined trails
		for _, l := range test.lines {
			got, c := joined.add(l.hops, test.nodes, start.Add(time.Duration(l.ms)*time.Millisecond))
			if !slices.Equal(got, l.want) {
				t.Errorf("%s, %d ms: %+v, expected %+v", name, l.ms, got, l.want)
			}
			if len(got) > 0 && c.Bound != test.bound {
				t.Errorf("%s, %d ms: the bound is %d, expected that of the home, %d", name, l.ms, c.Bound, test.bound)
			}
		}
	}
}

// TestTrailsAreBounded adds frames whose second hop is missing.
func TestTrailsAreBounded(t *testing.T) {
	var joined trails
	for n := range int64(maxTrails + 10) {
		joined.add(&hops{Frames: [][4]int64{{0, n, 0, 0}}}, 2, start)
	}
	if len(joined.frames) != maxTrails || len(joined.order) != maxTrails {
		t.Errorf("%d frames are kept, the limit is %d", len(joined.frames), maxTrails)
	}
	joined.expire(start.Add(trailTime))
	if len(joined.frames) != 0 || len(joined.order) != 0 {
		t.Errorf("%d frames are kept after %v", len(joined.frames), trailTime)
	}
}

// TestConvert converts the times of two clocks in turn. The errors add up.
func TestConvert(t *testing.T) {
	m := &hops{Base: 1_000_000}
	m.convert(clock.Estimate{Offset: 2000, Bound: 30, Uncertainty: 4})
	m.convert(clock.Estimate{Offset: -500, Bound: 7, Uncertainty: 5})
	if want := (hopClock{Offset: -1500, Bound: 37, Uncertainty: 9}); m.Base != 998_500 || m.hopClock != want {
		t.Errorf("converted to %d by the clock %+v", m.Base, m.hopClock)
	}
}

// FuzzHops reads messages of the probe stream. Hops that are accepted are within the limits, and can be converted,
// joined and passed on.
func FuzzHops(f *testing.F) {
	for _, seed := range []string{
		`{"t0":1}`, `{"t0":0,"hops":{"room":"r","participant":"p","publication":"c","id":1,"home":"one","depth":1,` +
			`"base":1795188600000000000,"offset":-5,"bound":6,"uncertainty":7,"frames":[[0,7,0,1000],[1,7,5,6]]}}`,
		`{"hops":{"room":"r","participant":"p","publication":"c","base":9223372036854775807,"frames":[[1]]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var passed []*hops
		p := probing{
			measured: func(time.Duration) {},
			passed:   func(m *hops, _ time.Time) { passed = append(passed, m) },
		}
		if err := p.receive(data, start); err != nil && !errors.Is(err, ErrMessage) {
			t.Fatalf("the error is %v", err)
		}
		for _, m := range passed {
			m.convert(clock.Estimate{Offset: time.Hour, Bound: time.Second, Uncertainty: time.Millisecond})
			var joined trails
			for nodes := range maxPath {
				for _, r := range first(joined.add(m, nodes+1, start)) {
					if r.Held < 0 || r.Held > maxPath*maxHopTime || r.Track >= maxTracks {
						t.Fatalf("a frame %+v", r)
					}
				}
			}
			text, err := json.Marshal(probe{Hops: m})
			if err != nil {
				t.Fatal(err)
			}
			var again probe
			if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again.Hops, m) {
				t.Fatalf("%s becomes %+v, %v", text, again.Hops, err)
			}
		}
	})
}

func first[T, U any](value T, _ U) T { return value }

// TestFrameTimesCross takes a publication with the times of its frames, through a parent too. A node that does not want
// times gets none.
func TestFrameTimesCross(t *testing.T) {
	c := startThrough(t)
	for _, name := range []string{"two", "three"} {
		if _, any := last[Relayed](c.nodes[name]); any {
			t.Errorf("node %s gets times that it does not want", name)
		}
	}
	begin := time.Now()
	c.nodes["three"].do(func(h *Host) {
		h.Take("home", room, ref, id, Demand{Tiles: []allocate.QualitySet{allocate.Qualities(1)}, Trace: true})
	})
	var e Relayed
	wait.Until(t, "times at node three", func() bool {
		c.p.frame(3000)
		var arrived bool
		e, arrived = last[Relayed](c.nodes["three"])
		return arrived
	})
	if e.Node != "home" || e.Room != room || e.Ref != ref || e.ID != id || e.Bound <= 0 || e.Uncertainty > e.Bound {
		t.Errorf("the event is %+v", e)
	}
	for _, f := range e.Frames {
		in := time.Unix(0, f.LastIn)
		// The clocks are the same, and the estimates are off by at most their bounds.
		if f.Track != 1 || f.Frame == 0 || f.Frame > c.p.publishers[1].Number || f.Held < 0 ||
			in.Before(begin.Add(-e.Bound)) || in.Add(f.Held).After(time.Now().Add(e.Bound)) {
			t.Errorf("frame %+v of times since %v", f, begin)
		}
	}
	if _, any := last[Relayed](c.nodes["two"]); any {
		t.Error("the parent, whose own receivers do not want times, gets times")
	}
	c.nodes["three"].do(func(h *Host) {
		h.Take("home", room, ref, id, Demand{Tiles: []allocate.QualitySet{allocate.Qualities(1)}})
	})
	wait.Until(t, "the end of tracing", func() bool {
		traced := 0
		for _, n := range []*node{c.home, c.nodes["two"]} {
			n.do(func(h *Host) {
				for _, l := range h.links {
					traced += len(l.origin.traced)
				}
			})
		}
		return traced == 0
	})
}
