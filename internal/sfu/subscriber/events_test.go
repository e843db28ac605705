package subscriber

import (
	"slices"
	"testing"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestDropsAreReported checks that a client is notified of frames of which nothing was sent. Frames that waited too
// long for the receiver count against the receiver's budget; frames that the publisher's link lost do not.
func TestDropsAreReported(t *testing.T) {
	for _, test := range []struct {
		event             egress.Event
		told, accountable int
	}{
		{egress.Event{DroppedFrames: 2, Dropped: egress.DroppedBudget}, 2, 2},
		{egress.Event{EndedFrames: 1, Dropped: egress.DroppedExpired}, 0, 1},
		{egress.Event{EndedFrames: 1, Dropped: egress.DroppedIncomplete}, 0, 0},
		{egress.Event{DroppedFrames: 3, Dropped: egress.DroppedIncomplete}, 3, 0},
	} {
		s := New(NewSlots(), NewChoices(1))
		s.Slots.Want(published("body", 1, volumetric.KindVideo))
		s.Slots.Add(idleLines(volumetric.KindVideo, "1"))
		s.Slots.Assign()
		slot := &egress.Slot{}
		s.Slots.ByMID("1").Output = slot
		test.event.Slot = slot
		_, dropped := s.TakeEvents([]egress.Event{test.event, {Slot: &egress.Slot{}, DroppedFrames: 7}}, true)
		frames := 0
		for _, drops := range dropped {
			frames += drops.Frames
		}
		if frames != test.told || s.dropped != test.accountable {
			t.Errorf("%d dropped and %d ended, %v: told of %d, expected %d; %d count against the budget, expected %d",
				test.event.DroppedFrames, test.event.EndedFrames, test.event.Dropped, frames, test.told, s.dropped,
				test.accountable)
		}
	}
}

// TestDropsOfAFormerAssignment passes events about tracks of the former and of the present target of a slot. The client
// must not count the former target's frames for the present one.
func TestDropsOfAFormerAssignment(t *testing.T) {
	body, desk := published("body", 1, volumetric.KindVideo), published("desk", 1, volumetric.KindVideo)
	for _, p := range []*Publication{body, desk} {
		for range p.Description.Qualities {
			p.AddTrack(&track.Track{}, 1)
		}
	}
	s := New(NewSlots(), NewChoices(1))
	s.Slots.Want(body)
	s.Slots.Add(idleLines(volumetric.KindVideo, "1"))
	s.Slots.Assign()
	s.Slots.Drop(body)
	s.Slots.Want(desk)
	s.Slots.Assign()
	output := &egress.Slot{}
	s.Slots.ByMID("1").Output = output
	_, dropped := s.TakeEvents([]egress.Event{
		{Slot: output, Track: body.Tracks[0], DroppedFrames: 2, Dropped: egress.DroppedBudget},
		{Slot: output, Track: desk.Tracks[1], DroppedFrames: 3, Dropped: egress.DroppedBudget},
	}, true)
	want := []signal.SlotDrops{{SlotGeneration: signal.SlotGeneration{MID: "1", Generation: 3}, Frames: 3}}
	if !slices.Equal(dropped, want) {
		t.Errorf("the client is notified of %+v, expected %+v", dropped, want)
	}
}
