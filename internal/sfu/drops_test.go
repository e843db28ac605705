package sfu

import (
	"testing"

	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/pkg/signal"
)

// TestWhoHearsOfDrops: a client is told of the frames of which nothing was sent, and what waited for it too long counts against its budget, but not what its publisher's link lost.
func TestWhoHearsOfDrops(t *testing.T) {
	for _, test := range []struct {
		event             forward.Event
		told, accountable int
	}{
		{forward.Event{DroppedFrames: 2, Dropped: forward.DroppedBudget}, 2, 2},
		{forward.Event{EndedFrames: 1, Dropped: forward.DroppedExpired}, 0, 1},
		{forward.Event{EndedFrames: 1, Dropped: forward.DroppedIncomplete}, 0, 0},
		{forward.Event{DroppedFrames: 3, Dropped: forward.DroppedIncomplete}, 3, 0},
	} {
		s := newStage(t, nil)
		s.enter("alice", false, false, ladder(1, 2))
		bob := s.watches("bob", 50e6)
		slot := bob.slots.slots[0]
		s.ask(func(r *Room) {
			bob.reception.dropped = 0
			played := slot.forward
			slot.forward = &forward.Slot{}
			test.event.Slot = slot.forward.(*forward.Slot)
			slotEvents{bob.connection, []forward.Event{test.event}}.apply(r)
			slot.forward = played
			if bob.reception.dropped != test.accountable {
				t.Errorf("%d frames dropped and %d ended, %v: %d count against the budget, expected %d", test.event.DroppedFrames, test.event.EndedFrames, test.event.Dropped,
					bob.reception.dropped, test.accountable)
			}
		})
		frames := 0
		if told, _ := latest[*signal.Delivery](bob.shelf); told != nil {
			for _, drops := range told.Dropped {
				frames += drops.Frames
			}
		}
		if frames != test.told {
			t.Errorf("%d frames dropped and %d ended, %v: told of %d, expected %d", test.event.DroppedFrames, test.event.EndedFrames, test.event.Dropped, frames, test.told)
		}
	}
}
