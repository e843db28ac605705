package trunk

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

var (
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cloud = publicationOf("room", volumetric.PublicationRef{Participant: "alice", Publication: "cloud"}, 5)
)

// script describes actions, in a fixed order.
func script(actions []action) string {
	var lines []string
	for _, a := range actions {
		switch {
		case a.offer != nil:
			text := fmt.Sprintf("offer %d:", a.offer.Offer)
			for _, s := range a.offer.Streams {
				text += fmt.Sprintf(" %d→%d", s.Track, s.SSRC)
			}
			lines = append(lines, text)
		case a.open:
			lines = append(lines, fmt.Sprintf("open %d", a.line.SSRC))
		case a.track < 0:
			lines = append(lines, fmt.Sprintf("clear %d", a.line.SSRC))
		default:
			lines = append(lines, fmt.Sprintf("select %d on %d", a.track, a.line.SSRC))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

// TestOrigin plays demands, and compares the actions with those expected.
func TestOrigin(t *testing.T) {
	o, now := newOrigin(10), start
	takes := func(tiles ...allocate.QualitySet) func() {
		return func() { o.take(&take{publication: cloud, Tiles: lists(tiles)}) }
	}
	confirms := func(number uint64) func() { return func() { o.confirm(&bound{cloud, number}) } }
	for i, step := range []struct {
		after time.Duration
		do    func()
		want  string
	}{
		{0, takes(allocate.Qualities(0)), ""},
		{0, func() { o.publish(cloud, &offered{2, make([]bool, 4)}) }, "offer 1: 0→12; open 12"},
		{0, confirms(2), ""},
		{0, confirms(1), "select 0 on 12"},
		{0, takes(allocate.Qualities(0), allocate.Qualities(1)), "offer 2: 0→12 3→14; open 14"},
		{0, confirms(2), "select 3 on 14"},
		{0, takes(0, allocate.Qualities(1)), "clear 12; offer 3: 3→14"},
		{time.Second, takes(allocate.Qualities(1), allocate.Qualities(1)), "offer 4: 1→16 3→14; open 16"},
		{0, confirms(4), "select 1 on 16"},
		{restTime, takes(allocate.Qualities(0, 1), allocate.Qualities(1)), "offer 5: 0→12 1→16 3→14"},
		{0, func() { o.mask(cloud, 3, true) }, "clear 14; offer 6: 0→12 1→16"},
		{0, confirms(6), "select 0 on 12"},
		{restTime, func() { o.mask(cloud, 3, false) }, "offer 7: 0→12 1→16 3→14"},
		{0, func() { o.take(&take{publication: cloud, Tiles: [][]int{{0, 1}, {1}}, Fresh: true}) },
			"offer 8: 0→12 1→16 3→14"},
		{0, func() { o.withdraw(cloud) }, "clear 12; clear 14; clear 16; offer 9:"},
	} {
		now = now.Add(step.after)
		step.do()
		actions, _ := o.step(now)
		if got := script(actions); got != step.want {
			t.Errorf("step %d: %q, expected %q", i+1, got, step.want)
		}
	}
	if len(o.takes) != 0 {
		t.Error("the demand for a withdrawn publication is kept")
	}
}

// TestStarvedTracks takes more tracks than there are streams. The others follow when streams are free.
func TestStarvedTracks(t *testing.T) {
	o := newOrigin(10)
	large := cloud
	large.ID++
	o.publish(large, &offered{1, make([]bool, maxStreams)})
	o.publish(cloud, &offered{1, make([]bool, 1)})
	all := make([]allocate.QualitySet, maxStreams)
	for i := range all {
		all[i] = allocate.Qualities(0)
	}
	o.take(&take{publication: large, Tiles: lists(all)})
	steps := func(now time.Time) {
		for more := true; more; {
			_, more = o.step(now)
		}
	}
	steps(start)
	o.take(&take{publication: cloud, Tiles: [][]int{{0}}})
	steps(start)
	streams := func() int { return len(o.takes[cloud].streams) }
	if n := streams(); n != 0 || len(o.starved) != 1 {
		t.Fatalf("%d streams, %d publications without, expected 0 and 1", n, len(o.starved))
	}
	o.take(&take{publication: large, Tiles: lists(all[1:])})
	steps(start)
	steps(start.Add(restTime - 1))
	if n := streams(); n != 0 {
		t.Fatalf("%d streams before a stream has rested", n)
	}
	steps(start.Add(restTime))
	if n := streams(); n != 1 || len(o.starved) != 0 {
		t.Errorf("%d streams, %d publications without, expected 1 and 0", n, len(o.starved))
	}
}

// TestTakesAreBounded checks the number of publications that a node can take.
func TestTakesAreBounded(t *testing.T) {
	o := newOrigin(0)
	for i := range maxTakes {
		if !o.take(&take{publication: publication{ID: uint64(i)}}) {
			t.Fatalf("publication %d was refused", i)
		}
	}
	if o.take(&take{publication: publication{ID: maxTakes}}) {
		t.Error("more than maxTakes publications were accepted")
	}
}

// TestTakingPermits follows the packets that may arrive: those of taken tracks, and for a while those that were.
func TestTakingPermits(t *testing.T) {
	k := newTaking(start)
	k.mirror(cloud, 2, 4)
	k.demand(cloud, []allocate.QualitySet{allocate.Qualities(0)})
	streams := []stream{{Track: 0, SSRC: 2, Retransmission: 3}, {Track: 9, SSRC: 8}}
	m := &offer{publication: cloud, Offer: 1, Streams: streams}
	changes, known := k.offered(m)
	if !known || len(changes) != 1 || changes[0].SSRC != 2 || changes[0].unbind {
		t.Fatalf("the changes are %+v", changes)
	}
	permitted, _ := k.permit(start)
	if until, known := permitted[2]; !known || until != whileTaken {
		t.Errorf("a taken track is permitted until %v", until)
	}
	if _, known := permitted[8]; known {
		t.Error("a track that does not exist is permitted")
	}
	k.demand(cloud, nil)
	permitted, changed := k.permit(start)
	if !changed || permitted[2] != graceTime {
		t.Errorf("a former track is permitted until %v, expected %v", permitted[2], graceTime)
	}
	if changes, _ := k.offered(&offer{publication: cloud, Offer: 2}); len(changes) != 1 || !changes[0].unbind {
		t.Errorf("the changes are %+v", changes)
	}
	k.remove(cloud)
	if permitted, _ = k.permit(start.Add(graceTime)); len(permitted) != 1 {
		t.Errorf("%d SSRCs are permitted, expected that of the retransmissions", len(permitted))
	}
	if _, known := k.offered(m); known {
		t.Error("an offer of a removed publication has an effect")
	}
}

// TestUnwantedOffer receives an offer of a track whose demand has ended meanwhile. Its packets may arrive until the
// origin has read the demand.
func TestUnwantedOffer(t *testing.T) {
	k := newTaking(start)
	k.mirror(cloud, 1, 2)
	k.demand(cloud, []allocate.QualitySet{allocate.Qualities(0), 0})
	k.permit(start)
	k.demand(cloud, []allocate.QualitySet{0, 0})
	k.offered(&offer{publication: cloud, Offer: 1, Streams: []stream{{Track: 0, SSRC: 2}}})
	for i := range 3 {
		k.stale = true
		permitted, _ := k.permit(start.Add(time.Duration(i) * graceTime / 2))
		if until, known := permitted[2]; known != (i < 2) || known && until != graceTime {
			t.Errorf("after %d half grace times: permitted %t until %v", i, known, until)
		}
	}
}

// TestUntakenAreCountedPerWindow counts packets of tracks that are not taken.
func TestUntakenAreCountedPerWindow(t *testing.T) {
	exceeded := 0
	p := permit{began: start, exceeded: func() { exceeded++ }}
	p.ssrcs.Store(&map[uint32]time.Duration{2: graceTime, 3: always})
	for _, c := range []struct {
		ssrc uint32
		at   time.Duration
		want bool
	}{{2, graceTime, true}, {2, graceTime + 1, false}, {3, time.Hour, true}, {4, 0, false}} {
		if got := p.admits(c.ssrc, start.Add(c.at)); got != c.want {
			t.Errorf("SSRC %d after %v: %t", c.ssrc, c.at, got)
		}
	}
	for window := range 4 {
		for range MaxUntaken - 1 {
			p.admits(4, start.Add(time.Hour+time.Duration(window)*untakenWindow))
		}
	}
	if exceeded != 0 {
		t.Fatal("packets of several windows were added")
	}
	p.admits(4, start.Add(time.Hour+3*untakenWindow+untakenWindow-1))
	if exceeded != 1 || p.total.Load() != 4*(MaxUntaken-1)+3 {
		t.Errorf("%d times exceeded after %d packets", exceeded, p.total.Load())
	}
}

// TestSilence steps the silence of a node: packets, silence, a pause of this node, the end.
func TestSilence(t *testing.T) {
	now, packet := start, time.Time{}
	s := newSilence(now)
	for i, step := range []struct {
		after  time.Duration
		packet bool
		want   silenceStep
	}{
		{tickInterval, true, silenceStep{received: true}},
		{tickInterval / 2, true, silenceStep{}},
		{tickInterval, true, silenceStep{received: true}},
		{pauseAfter, false, silenceStep{}},
		{pauseAfter, false, silenceStep{}},
		// This node did not run: the packets of this time wait in the socket.
		{time.Minute, false, silenceStep{}},
		{SilentAfter - 2*pauseAfter, false, silenceStep{}},
		{1, false, silenceStep{silent: true}},
		{tickInterval, false, silenceStep{}},
		{tickInterval, true, silenceStep{received: true}},
		{SilentAfter, false, silenceStep{}},
	} {
		now = now.Add(step.after)
		if step.packet {
			packet = now
		}
		if got := s.step(now, packet); got != step.want {
			t.Errorf("step %d: %+v, expected %+v", i+1, got, step.want)
		}
	}
	for elapsed := time.Duration(0); elapsed <= endAfter+time.Second; elapsed += tickInterval {
		now = now.Add(tickInterval)
		if s.step(now, packet).ended {
			if quiet := now.Sub(packet) - SilentAfter; quiet <= endAfter || quiet > endAfter+2*tickInterval {
				t.Errorf("ended after %v", quiet)
			}
			return
		}
	}
	t.Error("not ended")
}

// TestFit checks the order in which tracks are masked, that one track of video is always carried, and that another
// masked track returns only if there is room to spare.
func TestFit(t *testing.T) {
	tracks := func(masked int) []candidate {
		c := []candidate{
			{cloud, 0, false, 0, 2e6, false}, {cloud, 1, false, 1, 4e6, false}, {cloud, 2, false, 0, 3e6, false},
			{cloud, 3, false, 1, 3e6, false}, {cloud, 4, true, 0, 5e5, false},
		}
		if masked >= 0 {
			c[masked].masked = true
		}
		return c
	}
	for _, c := range []struct {
		estimate volumetric.Bitrate
		masked   int
		want     string
	}{
		{14e6, -1, "[]"},
		{13e6, -1, "[1]"},
		{14e6, 1, "[1]"},
		{17e6, 1, "[]"},
		{7e6, -1, "[1 3]"},
		{4e6, -1, "[1 2 3]"},
		{1e6, -1, "[1 2 3]"},
		{1e6, 0, "[0 1 3]"},
	} {
		candidates := tracks(c.masked)
		fit(candidates, c.estimate)
		masked := []int{}
		for _, c := range candidates {
			if c.masked {
				masked = append(masked, c.track)
			}
		}
		slices.Sort(masked)
		if got := fmt.Sprint(masked); got != c.want {
			t.Errorf("estimate %d, masked %d: %s, expected %s", c.estimate, c.masked, got, c.want)
		}
	}
}

// TestMasksFollowSeveralDecisions masks a track after maskAfter decisions in a row, and releases it at once.
func TestMasksFollowSeveralDecisions(t *testing.T) {
	o := newOrigin(2)
	o.publish(cloud, &offered{1, make([]bool, 1)})
	o.take(&take{publication: cloud, Tiles: [][]int{{0}}})
	for i, c := range []struct{ fits, want bool }{
		{false, false}, {false, false}, {true, false}, {false, false}, {false, false}, {false, true}, {false, false},
		{true, true}, {true, false}, {false, false},
	} {
		if got := o.fits(cloud, 0, c.fits); got != c.want {
			t.Errorf("decision %d changes the masks: %t", i+1, got)
		}
	}
}

// TestRatesDiffer checks the step of rates that are reported.
func TestRatesDiffer(t *testing.T) {
	for _, c := range []struct {
		before, after volumetric.Bitrate
		want          bool
	}{{100, 104, false}, {100, 105, true}, {100, 95, true}, {0, 1, true}, {1, 0, true}, {0, 0, false}} {
		if got := differ([]volumetric.Bitrate{c.before}, []volumetric.Bitrate{c.after}); got != c.want {
			t.Errorf("%d to %d: %t", c.before, c.after, got)
		}
	}
}
