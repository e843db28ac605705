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
		{0, func() { o.publish(cloud, 2, make([]bool, 4)) }, "offer 1: 0→12; open 12"},
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
		{0, func() { o.withdraw(cloud) }, "clear 12; clear 14; clear 16; offer 8:"},
		{0, takes(), ""},
	} {
		now = now.Add(step.after)
		step.do()
		if got := script(o.step(now)); got != step.want {
			t.Errorf("step %d: %q, expected %q", i+1, got, step.want)
		}
	}
	if len(o.takes) != 0 {
		t.Error("the demand for a withdrawn publication is kept")
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
	k := newTaking()
	k.mirror(cloud, 2, 4)
	k.demand(cloud, []allocate.QualitySet{allocate.Qualities(0)})
	streams := []stream{{Track: 0, SSRC: 2, Retransmission: 3}, {Track: 9, SSRC: 8}}
	m := &offer{publication: cloud, Offer: 1, Streams: streams}
	changes, known := k.offered(m)
	if !known || len(changes) != 1 || changes[0].SSRC != 2 || changes[0].unbind {
		t.Fatalf("the changes are %+v", changes)
	}
	permitted, _ := k.permit(start)
	if until, known := permitted[2]; !known || until != 0 {
		t.Errorf("a taken track is permitted until %d", until)
	}
	if _, known := permitted[8]; known {
		t.Error("a track that does not exist is permitted")
	}
	k.demand(cloud, nil)
	permitted, changed := k.permit(start)
	if want := start.Add(graceTime).UnixNano(); !changed || permitted[2] != want {
		t.Errorf("a former track is permitted until %d, expected %d", permitted[2], want)
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

// TestFit checks the order in which tracks are masked, and that a masked track returns only if there is room to spare.
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
		{1e6, -1, "[0 1 2 3]"},
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
