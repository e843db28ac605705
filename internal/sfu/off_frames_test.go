package sfu

import (
	"testing"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestOffFramesAreReported switches a slot off and on. The client is notified once of the frames that it did not
// receive because of that, also if the slot was off again or the client was away before the message, and again after a
// resume.
func TestOffFramesAreReported(t *testing.T) {
	s := newStage(t, nil)
	s.enter("alice", false, false, ladder(1, 2))
	bob := s.watches("bob", 50e6)
	carol := s.enter("carol", false, false, ladder(1, 2))
	slot := bob.subscriber.Slots.All()[0]
	own, other := slot.Target.Publication, carol.Publications[0].Publication
	played := slot.Output
	// begins lets the slot begin a quality of a publication after a number of frames for which the slot was off.
	begins := func(publication *subscriber.Publication, q volumetric.Quality, first, count uint32) {
		s.ask(func(r *Room) {
			track, _ := publication.Track(0, q)
			real := &egress.Slot{}
			slot.Output = real
			slotEvents{bob.connection, []egress.Event{{Slot: real, Track: track, Switched: true,
				OffFrames: egress.FrameRange{First: first, Count: count}}}}.apply(r)
			slot.Output = played
		})
	}
	choose := func(q volumetric.Quality) {
		bob.choose(0, signal.Only(q))
		s.pass(subscriber.AllocationSpacing)
	}
	expectTold := func(when string, want signal.FrameRange) {
		t.Helper()
		told, _ := latest[*signal.Sending](bob.shelf)
		if len(told.Slots) != 1 {
			t.Fatalf("%s: told of %d slots, expected one", when, len(told.Slots))
		}
		if got := told.Slots[0].OffFrames; got == nil && want.Count > 0 || got != nil && *got != want {
			t.Errorf("%s: off frames are %+v, expected %+v", when, got, want)
		}
	}
	choose(1)
	begins(own, 1, 0, 0)
	expectTold("at first", signal.FrameRange{})
	choose(volumetric.QualityOff)
	expectTold("off", signal.FrameRange{})
	choose(1)
	choose(volumetric.QualityOff)
	begins(own, 1, 100, 5)
	expectTold("on when it is off again", signal.FrameRange{})
	choose(0)
	begins(own, 0, 107, 20)
	expectTold("on", signal.FrameRange{First: 100, Count: 27})
	choose(1)
	begins(own, 1, 0, 0)
	expectTold("another quality", signal.FrameRange{})
	s.ask(func(*Room) { bob.sendSlotQualities(bob.subscriber.Sending()) })
	expectTold("after coming back", signal.FrameRange{First: 100, Count: 27})
	choose(volumetric.QualityOff)
	choose(1)
	begins(own, 1, 1<<32-2, 4)
	expectTold("on where numbers wrap around", signal.FrameRange{First: 1<<32 - 2, Count: 4})
	choose(volumetric.QualityOff)
	choose(1)
	begins(other, 1, 5, 1000)
	begins(own, 1, 2, 3)
	expectTold("after word of what the slot carried before", signal.FrameRange{First: 2, Count: 3})
	choose(volumetric.QualityOff)
	choose(1)
	s.ask(func(*Room) { bob.outbox = nil })
	begins(own, 1, 10, 3)
	choose(volumetric.QualityOff)
	choose(1)
	s.ask(func(*Room) { bob.outbox = bob.shelf })
	begins(own, 1, 20, 3)
	expectTold("of two pauses, one of them when nobody listened", signal.FrameRange{First: 10, Count: 13})
}
