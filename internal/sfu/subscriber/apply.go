package subscriber

import (
	"time"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// bandwidthInterval is the minimum time between two bandwidth messages, and bandwidthTolerance the minimum relative
	// change. A fall below fallShare is reported at once: a client follows a path that shrinks to a quarter within a
	// tenth of a second.
	bandwidthInterval  = 500 * time.Millisecond
	bandwidthTolerance = 0.01
	fallShare          = 0.75
	// reasonInterval is the minimum time between two messages that only change reasons.
	reasonInterval = time.Second
)

// decision is a decision about one slot.
type decision struct {
	slot    *Slot
	quality volumetric.Quality
	reason  signal.Reason
}

// applier applies decisions to slots and collects the slots that the client is notified of at once.
type applier struct {
	subscriber *Subscriber
	metrics    Metrics
	requested  time.Time
	asked      bool
	sending    []signal.SlotQuality
}

// apply applies a decision to a slot. The client is notified at once of a slot that is switched off, because no first
// packet follows that would cause a message later, and of a request that changes nothing.
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

// TakeEvents applies events of slots in the data plane and returns the messages for the client. Events about tracks of
// a former assignment cause no message. present reports whether the client has a websocket.
func (s *Subscriber) TakeEvents(
	events []egress.Event, present bool,
) (sending []signal.SlotQuality, dropped []signal.SlotDrops) {
	for _, event := range events {
		slot := s.Slots.ByOutput(event.Slot)
		if slot == nil || slot.Target == nil {
			continue
		}
		if event.Switched {
			quality, ok := slot.Target.qualityOf(event.Track)
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
			// Frames that a publisher's link loses are not a sign of the receiver's link.
			s.dropped += event.DroppedFrames + event.EndedFrames
		}
		if event.DroppedFrames > 0 && slot.Target.dropped(event) {
			dropped = append(dropped, signal.SlotDrops{SlotGeneration: slot.generation(), Frames: event.DroppedFrames})
		}
	}
	return sending, dropped
}

// dropped reports whether an event is about frames of the target. The events of a FrameOutlet do not name the track.
func (t *Target) dropped(event egress.Event) bool {
	if event.Track == nil {
		return true
	}
	_, ok := t.qualityOf(event.Track)
	return ok
}

// Sending returns the qualities that were sent in messages before a resume, because the client may have missed the
// messages.
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

// Reasons returns the slots whose reason has changed since the client was notified, at most once per reasonInterval.
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

// Bandwidth returns a bandwidth message for the client, nil if none is due.
func (s *Subscriber) Bandwidth(now time.Time) *signal.Bandwidth {
	path := s.link.Path()
	if !path.Known {
		return nil
	}
	// Sums of declared rates may exceed the limit of the message.
	m := signal.Bandwidth{
		Estimate:  min(path.Estimate, signal.MaxBitrate),
		Allocated: min(s.last.rate, signal.MaxBitrate),
		Wanted:    min(s.last.wanted, signal.MaxBitrate),
		L4S:       path.L4S.String(),
	}
	fell := fallen(m.Estimate, s.told.Estimate) || fallen(m.Allocated, s.told.Allocated)
	if now.Sub(s.toldAt) < bandwidthInterval && !fell ||
		near(m.Estimate, s.told.Estimate, bandwidthTolerance) &&
			near(m.Allocated, s.told.Allocated, bandwidthTolerance) &&
			near(m.Wanted, s.told.Wanted, bandwidthTolerance) && m.L4S == s.told.L4S {
		return nil
	}
	s.told, s.toldAt = m, now
	return &m
}

// RepeatBandwidth makes the next call of Bandwidth return a message, whatever the client received before.
func (s *Subscriber) RepeatBandwidth() { s.told = signal.Bandwidth{} }

// fallen reports whether a rate has fallen so much that the client is notified at once.
func fallen(rate, before volumetric.Bitrate) bool { return float64(rate) < fallShare*float64(before) }

// near reports whether the relative difference of a rate from before is at most the tolerance.
func near(rate, before volumetric.Bitrate, tolerance float64) bool {
	difference := float64(rate - before)
	return max(difference, -difference) <= tolerance*float64(before)
}
