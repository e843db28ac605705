package subscriber

import (
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// budgetTolerance is the relative rise of the budget that causes another decision. A budget below the rate that is
	// sent always causes one.
	budgetTolerance = 0.02
	// refreshInterval is the maximum age of a decision that leaves room for improvement. Changes that came in small
	// steps then take effect.
	refreshInterval = time.Second
	// AllocationSpacing is the minimum time between two allocations for one receiver. If a client sends one message for
	// each of its tiles, messages within this time cost the room only one allocation. In a large room, an allocation
	// takes longer, and the spacing is SpacingFactor times the duration of the last allocation, so that a receiver that
	// always changes its choices uses about a quarter of the room's goroutine. No allocation waits past the next tick.
	AllocationSpacing = 2 * time.Millisecond
	// SpacingFactor is the minimum time between two allocations, in multiples of the duration of the last allocation.
	SpacingFactor = 4
)

// urgency is the urgency of another decision.
type urgency int

const (
	// notDue: no relevant change.
	notDue urgency = iota
	// dueSometime: an improvement may be possible. In a large room, not every such decision is made at once.
	dueSometime
	// dueNow: the rate that is sent is too high, or the qualities are wrong.
	dueNow
)

// Invalidate records that the possible contents of the slots have changed.
func (s *Subscriber) Invalidate() { s.layout.stale, s.stale = true, true }

// Request requests another decision because of a choice or of slots that became ready. requested is the time of the
// client's request. Request returns the time until which the decision is deferred, zero if it is to be made at once.
func (s *Subscriber) Request(requested, now time.Time, interval time.Duration) (until time.Time) {
	s.Invalidate()
	if s.requested.IsZero() || requested.Before(s.requested) {
		s.requested = requested
	}
	if due := s.spaced(interval); s.known && now.Before(due) {
		s.deferred = true
		return due
	}
	return time.Time{}
}

// Deferred returns the time until which a decision is deferred, false if none is deferred.
func (s *Subscriber) Deferred(interval time.Duration) (time.Time, bool) {
	if !s.deferred {
		return time.Time{}, false
	}
	return s.spaced(interval), true
}

// spaced returns the earliest time of the next decision that a receiver requests. interval is the interval of ticks.
func (s *Subscriber) spaced(interval time.Duration) time.Time {
	return s.last.at.Add(max(AllocationSpacing, min(SpacingFactor*s.last.took, interval)))
}

// Decide decides the qualities of the slots if there are relevant changes, and applies the decisions. Decide returns
// the slots that the client is notified of at once.
func (s *Subscriber) Decide(now time.Time, room *Scheduler) []signal.SlotQuality {
	path := s.link.Path()
	granted, known := s.step(now, path, s.audioRate())
	due := notDue
	switch {
	case known:
		due = s.due(now, granted, s.carriedRate(volumetric.KindVideo), room.Changes, path.RTT)
	case s.stale || s.last.changes.Offered != room.Changes.Offered:
		due = dueNow
	}
	if due == notDue || due == dueSometime && room.credit <= 0 {
		return nil
	}
	a := &applier{subscriber: s, metrics: room.Metrics, requested: s.requested, asked: !s.requested.IsZero()}
	if !a.asked {
		a.requested = now
	}
	s.requested = time.Time{}
	s.last.changes = room.Changes
	s.followChoices(a, known)
	if known {
		s.decideVideo(a, now, room, granted, path)
	} else {
		s.stale, s.deferred = false, false
	}
	return a.sending
}

// due returns the urgency of another decision. granted is the present budget, and carried the present rate of the
// qualities that are sent.
func (s *Subscriber) due(
	now time.Time, granted, carried volumetric.Bitrate, changes Changes, rtt time.Duration,
) urgency {
	switch {
	case s.stale, s.last.changes.Offered != changes.Offered,
		carried > granted && (granted < s.last.granted || s.last.changes.Rates != changes.Rates):
		return dueNow
	case s.last.changes.Rates != changes.Rates:
		return dueSometime
	case s.last.rate >= s.last.wanted && granted >= s.last.wanted && !(s.sparing && s.Looks()):
		return notDue // Everything is sent, whatever the viewpoint.
	case float64(granted) > float64(s.last.granted)*(1+budgetTolerance), s.last.changes.Motion != changes.Motion,
		now.Sub(s.last.at) >= refreshInterval:
		return dueSometime
	}
	v, ok := s.predictor.Predict(seenAt(now, rtt))
	last := &s.last.viewpoint
	if ok && (s.scene.Viewpoint == nil || v.FOV != last.FOV || v.Aspect != last.Aspect ||
		apart(v.Position, last.Position, v.Orientation, last.Orientation)) {
		return dueSometime
	}
	return notDue
}

// decideVideo runs the allocator and applies its decisions about video.
func (s *Subscriber) decideVideo(
	a *applier, now time.Time, room *Scheduler, granted volumetric.Bitrate, path egress.Path,
) {
	if s.layout.stale {
		s.layout.build(s.Slots.all, &s.scene)
	}
	began := room.Clock()
	result := s.allocate(room.Allocator, now, granted, path.RTT)
	took := room.Clock().Sub(began)
	s.last.took = took
	room.spend(took, granted)
	// The first packets are followed by probes, which rise to the wanted rate.
	wanted := float64(result.Wanted+s.comingRate()) * (1 + s.Overhead(path))
	s.link.Want(volumetric.Bitrate(wanted) + s.audioRate())
	s.layout.decisions(result.Tiles, s.Choices, a.apply)
}

// allocate updates the scene and runs the allocator. The result is valid until the next call.
func (s *Subscriber) allocate(
	a Allocator, now time.Time, granted volumetric.Bitrate, rtt time.Duration,
) allocate.Result {
	s.layout.fill(&s.scene, s.Choices, s.arranged, now)
	s.scene.Budget, s.scene.Viewpoint = granted, nil
	if v, ok := s.predictor.Predict(seenAt(now, rtt)); ok {
		s.last.viewpoint = v
		s.scene.Viewpoint = &s.last.viewpoint
	}
	result := a.Allocate(&s.scene)
	s.last.at, s.last.granted, s.stale, s.deferred = now, granted, false, false
	s.last.rate, s.last.wanted = result.Rate, result.Wanted
	return result
}

// comingRate returns the rate of the chosen video qualities on slots that are not ready yet. For a client that has just
// joined, that is all video.
func (s *Subscriber) comingRate() volumetric.Bitrate {
	var sum volumetric.Bitrate
	for _, slot := range s.Slots.all {
		if slot.Target != nil && slot.Kind == volumetric.KindVideo && !slot.Ready() {
			sum += s.chosenRate(slot.Target)
		}
	}
	for _, t := range s.Slots.waiting[volumetric.KindVideo] {
		sum += s.chosenRate(t)
	}
	return sum
}

// chosenRate returns the rate of a target's chosen quality, or of the available quality in its place.
func (s *Subscriber) chosenRate(t *Target) volumetric.Bitrate {
	publication := t.Publication
	quality := decide(s.Choices.Of(t.Tile), &publication.Description, t.Description)
	if quality == volumetric.QualityOff {
		return 0
	}
	if t.Description == nil {
		quality = publication.Levels.available(t.Tile.Tile, quality)
	}
	return publication.Levels.Rate(t.Tile.Tile, quality)
}

// followChoices applies the receiver's choices, limited to the available qualities, without the allocator: to audio
// slots, which have priority, and to all slots if there is no estimate of the link, for clients that send no feedback.
func (s *Subscriber) followChoices(a *applier, known bool) {
	for _, slot := range s.Slots.all {
		if !slot.Ready() || known && slot.Kind == volumetric.KindVideo {
			continue
		}
		a.apply(s.chosen(slot))
	}
}

// chosen returns the decision for a slot according to the receiver's choice and the available qualities.
func (s *Subscriber) chosen(slot *Slot) decision {
	publication, selection := slot.Target.Publication, s.Choices.Of(slot.Target.Tile)
	decided := decide(selection, &publication.Description, slot.Target.Description)
	if slot.Target.Description != nil {
		return decision{slot, decided, reasonFor(selection)}
	}
	quality := publication.Levels.available(slot.Target.Tile.Tile, decided)
	if quality != decided {
		return decision{slot, quality, signal.ReasonAuto}
	}
	return decision{slot, quality, reasonFor(selection)}
}

// Expect asks publishers for the expected tracks of newly assigned slots: the lowest quality, because a link begins
// with a low rate.
func (s *Subscriber) Expect() {
	for _, slot := range s.Slots.all {
		if slot.Target == nil || slot.selected {
			continue
		}
		quality := s.chosen(slot).quality
		if slot.Target.Description == nil {
			quality = min(quality, 0)
		}
		slot.expect(quality)
	}
}
