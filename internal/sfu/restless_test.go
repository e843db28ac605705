package sfu

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestRepeatedRequestsCauseNoDecision sends empty and repeated acknowledgements and a repeated choice.
func TestRepeatedRequestsCauseNoDecision(t *testing.T) {
	s := newStage(t, nil)
	s.enter("alice", false, false, ladder(2, 3))
	bob := s.watches("bob", 100e6)
	bob.choose(0, signal.Only(1))
	s.pass(time.Second)
	bob.expectCarried("1 2")
	again := &signal.Acknowledge{}
	for _, slot := range bob.subscriber.Slots.All() {
		again.Slots = append(again.Slots, signal.SlotGeneration{MID: slot.MID, Generation: slot.Generation})
	}
	before := s.counts.allocations
	for range 100 {
		bob.say(&signal.Acknowledge{Slots: []signal.SlotGeneration{}}, again)
		bob.choose(0, signal.Only(1))
		s.pass(5 * time.Millisecond)
	}
	if n := s.counts.allocations - before; n != 0 {
		t.Errorf("%d decisions, expected none", n)
	}
	// The slots are assigned again and may be used after the acknowledgement.
	s.ask(func(r *Room) {
		body := r.participants["alice"].Publications
		bob.unsubscribe(body[0])
		bob.subscribe(body)
	})
	s.pass(time.Second)
	again = &signal.Acknowledge{}
	for _, slot := range bob.subscriber.Slots.All() {
		again.Slots = append(again.Slots, signal.SlotGeneration{MID: slot.MID, Generation: slot.Generation})
	}
	before = s.counts.allocations
	bob.say(again)
	s.pass(subscriber.AllocationSpacing)
	if n := s.counts.allocations - before; n != 1 {
		t.Errorf("%d decisions once slots can be used, expected one", n)
	}
}

// TestAReceiverThatNeverRestsLeavesTimeToOthers checks that slow decisions for one receiver are made less often.
func TestAReceiverThatNeverRestsLeavesTimeToOthers(t *testing.T) {
	s := newStage(t, nil)
	s.enter("alice", false, false, ladder(2, 3))
	bob := s.watches("bob", 100e6)
	s.pass(time.Second)
	s.cost = 5 * time.Millisecond
	before := s.counts.allocations
	for i := range 400 {
		bob.choose(0, signal.Only(volumetric.Quality(i%2)))
		s.pass(2500 * time.Microsecond)
	}
	// One decision every 20 ms, and one for each of the 20 changes that concern all receivers.
	if n := s.counts.allocations - before; n < 40 || n > 70 {
		t.Errorf("%d decisions in a second, expected 60", n)
	}
}
