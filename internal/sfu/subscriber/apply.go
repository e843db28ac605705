package subscriber

import (
	"time"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// bandwidthInterval is the least time between two messages about a receiver's bandwidth, and bandwidthTolerance the
	// change that they tell. A fall to less than fallShare is told at once: a client follows a path that shrinks to a
	// quarter within a tenth of a second.
	bandwidthInterval  = 500 * time.Millisecond
	bandwidthTolerance = 0.01
	fallShare          = 0.75
	// reasonInterval is the least time between two messages that tell reasons alone.
	reasonInterval = time.Second
)

// decision is a decision about one slot.
type decision struct {
	slot    *Slot
	quality volumetric.Quality
	reason  signal.Reason
}

// applier tells slots what was decided, and gathers what the client is to be told of it at once.
type applier struct {
	subscriber *Subscriber
	metrics    Metrics
	requested  time.Time
	asked      bool
	sending    []signal.SlotQuality
}

// apply tells a slot what to carry. The client is told of a slot that is off at once, since it has no first packet that
// would be told of later, and of a request that changes nothing.
func (a *applier) apply(d decision) {
	s := d.slot
	before := s.Reason
	changed := s.carry(d.quality, d.reason, a.requested, a.asked)
	if changed || s.Reason != before {
		a.metrics.Decided(d.reason)
	}
	off := changed && d.quality == volumetric.QualityOff
	switch {
	case off || a.asked && s.unexplained():
		a.sending = append(a.sending, s.explain())
	case s.unexplained():
		a.subscriber.unexplained = true
	}
}

// TakeEvents applies what happened on slots in the data plane, and returns what the client is to be told. present says
// that the client is there to be told.
func (s *Subscriber) TakeEvents(
	events []egress.Event, present bool,
) (sending []signal.SlotQuality, dropped []signal.SlotDrops) {
	for _, event := range events {
		slot := s.Slots.ByOutput(event.Slot)
		if slot == nil || slot.Target == nil {
			continue
		}
		if event.Switched {
			quality, ok := slot.Target.Publication.QualityOf(event.Track)
			if !ok {
				continue
			}
			slot.wasOff(event.OffFrames)
			if !slot.begun(quality) {
				continue
			}
			carried := signal.SlotQuality{SlotGeneration: slot.generation(), Quality: quality, Reason: slot.Reason}
			if slot.offNews {
				carried.OffFrames, slot.offNews = slot.offFrames, !present
			}
			if slot.asked && quality == slot.Quality {
				carried.DelayUS = event.Delay.Microseconds()
			}
			sending = append(sending, carried)
		}
		if event.Dropped != egress.DroppedIncomplete {
			// The frames that a publisher's link loses say nothing of the receiver's link.
			s.dropped += event.DroppedFrames + event.EndedFrames
		}
		if event.DroppedFrames > 0 {
			dropped = append(dropped, signal.SlotDrops{SlotGeneration: slot.generation(), Frames: event.DroppedFrames})
		}
	}
	return sending, dropped
}

// Sending repeats to a client that came back what is being sent, as far as that was told before: nobody may have heard
// it.
func (s *Subscriber) Sending() (sending []signal.SlotQuality) {
	for _, slot := range s.Slots.all {
		if slot.Ready() && slot.selected && slot.told != "" {
			sending = append(sending, signal.SlotQuality{
				SlotGeneration: slot.generation(), Quality: slot.Showing, Reason: slot.told, OffFrames: slot.offFrames,
			})
			slot.offNews = false
		}
	}
	return sending
}

// Reasons returns, at most once per reasonInterval, which slots go on for another reason than the client knows.
func (s *Subscriber) Reasons(now time.Time) (sending []signal.SlotQuality) {
	if !s.unexplained || now.Sub(s.reasoned) < reasonInterval {
		return nil
	}
	s.unexplained, s.reasoned = false, now
	for _, slot := range s.Slots.all {
		if slot.unexplained() {
			sending = append(sending, slot.explain())
		}
	}
	return sending
}

// Bandwidth returns what the client is to be told of its link, nil if it knows.
func (s *Subscriber) Bandwidth(now time.Time) *signal.Bandwidth {
	path := s.link.Path()
	if !path.Known {
		return nil
	}
	// Sums of rates that publishers declare may exceed what a message may say.
	m := signal.Bandwidth{
		Estimate:  min(path.Estimate, signal.MaxBitrate),
		Allocated: min(s.last.rate, signal.MaxBitrate),
		Wanted:    min(s.last.wanted, signal.MaxBitrate),
	}
	fell := fallen(m.Estimate, s.told.Estimate) || fallen(m.Allocated, s.told.Allocated)
	if now.Sub(s.toldAt) < bandwidthInterval && !fell ||
		near(m.Estimate, s.told.Estimate, bandwidthTolerance) &&
			near(m.Allocated, s.told.Allocated, bandwidthTolerance) &&
			near(m.Wanted, s.told.Wanted, bandwidthTolerance) {
		return nil
	}
	s.told, s.toldAt = m, now
	return &m
}

// RepeatBandwidth has the next Bandwidth told whatever the client was told before.
func (s *Subscriber) RepeatBandwidth() { s.told = signal.Bandwidth{} }

// fallen reports whether a rate is so much less than before that the client is to know at once.
func fallen(rate, before volumetric.Bitrate) bool { return float64(rate) < fallShare*float64(before) }

// near reports whether a rate differs from before by no more than that share of it.
func near(rate, before volumetric.Bitrate, tolerance float64) bool {
	difference := float64(rate - before)
	return max(difference, -difference) <= tolerance*float64(before)
}
