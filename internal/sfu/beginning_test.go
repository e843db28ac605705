package sfu

import (
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestALinkBeginsWithTheStartRate checks that the start rate applies until the first report, or until it is clear that
// no report will come.
func TestALinkBeginsWithTheStartRate(t *testing.T) {
	for name, c := range map[string]struct {
		path egress.Path
		want string
	}{
		"reports": {known(100e6), "2 2"}, "a slow link": {known(4.5e6), "1 1"}, "no reports": {egress.Path{}, "2 2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, nil)
			s.enter("alice", false, false, ladder(2, 3))
			bob := s.enter("bob", true, false)
			bob.way.path = awaited(2.5e6)
			s.pass(100 * time.Millisecond)
			// Before the client knows any slot, probes depend on the expected rate.
			if want := volumetric.Bitrate(8e6); bob.way.wanted < want || bob.way.wanted > want*12/10 {
				t.Errorf("%v are wanted, expected %v and headers", bob.way.wanted, want)
			}
			before := bob.way.wanted
			bob.attach()
			bob.expectCarried("0 0")
			if bob.way.wanted != before {
				t.Errorf("%v are wanted of a client that knows of its slots, %v before", bob.way.wanted, before)
			}
			s.pass(500 * time.Millisecond)
			bob.expectCarried("0 0")
			if _, n := latest[*signal.Bandwidth](bob.shelf); n > 0 {
				t.Error("the client is told an estimate that does not exist")
			}
			bob.way.path = c.path
			s.pass(50 * time.Millisecond)
			bob.expectCarried(c.want)
		})
	}
}

// TestWantedRate checks that the wanted rate follows from the receiver's choices and the available tracks, whatever
// the capacity of the link.
func TestWantedRate(t *testing.T) {
	s := newStage(t, nil)
	s.enter("alice", false, false, ladder(3, 3))
	bob := s.enter("bob", true, false)
	bob.way.path = awaited(2.5e6)
	s.pass(100 * time.Millisecond)
	check := func(when string, want float64) {
		t.Helper()
		s.pass(100 * time.Millisecond)
		if got := float64(bob.way.wanted) / (1 + bob.subscriber.Overhead(bob.way.path)); math.Abs(got-want) > 1 {
			t.Errorf("%s %.0f bit/s are wanted, expected %.0f", when, got, want)
		}
	}
	bob.choose(0, signal.Only(0))
	check("before the client knows of its slots", 9e6)
	bob.attach()
	check("afterwards", 9e6)
	bob.choose(1, signal.Only(volumetric.QualityOff))
	check("without a tile", 5e6)
	bob.choose(1, signal.Auto())
	check("with the tile", 9e6)
	s.ask(func(r *Room) {
		r.participants["alice"].Publications[0].Levels.GiveUp([]allocate.QualitySet{0, allocate.Qualities(1, 2), 0})
		r.scheduler.Changes.Offered++
	})
	check("of what the publisher sends", 6e6)
}

// TestOneTileIsSentIfNothingFits checks that one tile is sent on a link that is too narrow, unless the receiver
// wants nothing.
func TestOneTileIsSentIfNothingFits(t *testing.T) {
	s := newStage(t, nil)
	s.enter("alice", false, false, ladder(2, 3))
	bob := s.watches("bob", 500e3)
	bob.expectCarried("0 -1")
	for i, slot := range bob.subscriber.Slots.All() {
		if slot.Reason != signal.ReasonBudget {
			t.Errorf("slot %d is sent so for the reason %q, expected %q", i, slot.Reason, signal.ReasonBudget)
		}
	}
	s.pass(time.Second)
	if told := expect[*signal.Bandwidth](t, bob.shelf, 1); told.Estimate != 500e3 || told.Allocated != 1e6 ||
		told.Wanted != 8e6 {
		t.Errorf("told %+v", told)
	}
	bob.choose(0, signal.Only(volumetric.QualityOff))
	s.pass(subscriber.AllocationSpacing)
	bob.expectCarried("-1 0")
	bob.choose(1, signal.Only(volumetric.QualityOff))
	s.pass(subscriber.AllocationSpacing)
	bob.expectCarried("-1 -1")
}

// TestPausedLevelsKeepTheMeasuredRate checks that a paused track keeps its measured rate instead of the declared rate
// or 0.
func TestPausedLevelsKeepTheMeasuredRate(t *testing.T) {
	s := newStage(t, strictly)
	alice := s.enter("alice", false, true, ladder(1, 3))
	bob := s.watches("bob", 50e6)
	high := playedMeter(7e6)
	alice.Publications[0].Levels.SetMeter(2, &high)
	s.pass(2 * time.Second)
	bob.choose(0, signal.Only(0))
	bob.begin()
	s.pass(time.Second)
	alice.expectAsked("0")
	high = 0
	// The declared rate would fit.
	bob.way.path = known(5e6)
	s.pass(time.Second)
	bob.choose(0, signal.Auto())
	s.pass(time.Second)
	bob.expectCarried("1")
	if r := bob.subscriber.State(false); r.Target != 2e6 || r.Wanted != 7e6 {
		t.Errorf("%v of %v are sent, expected 2 of 7 Mbit/s", r.Target, r.Wanted)
	}
}
