package subscriber

import (
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// budgetTolerance is how far the budget rises before it calls for another decision. A budget that falls below the
	// rate that is sent always does.
	budgetTolerance = 0.02
	// refreshInterval is how long a decision stands that leaves something to improve: changes that came in small steps
	// count then.
	refreshInterval = time.Second
	// AllocationSpacing is the least time between two allocations for one receiver: a client that sends a message for
	// each of its tiles costs the room one allocation for all that come so close. In a large room, where an
	// allocation takes longer, it is SpacingFactor times what the last one took, so that a receiver that changes its
	// choices all the time takes about a quarter of the room's goroutine. None waits for longer than until the next
	// tick.
	AllocationSpacing = 2 * time.Millisecond
	// SpacingFactor is the least time between two allocations, in multiples of what the last one took.
	SpacingFactor = 4
)

// urgency says how soon another decision is due.
type urgency int

const (
	// notDue: nothing has changed that matters.
	notDue urgency = iota
	// dueSometime: something better may be possible. In a large room not every receiver's turn is followed at once.
	dueSometime
	// dueNow: the rate that is sent is too high, or the qualities are not those that they should be.
	dueNow
)

// Invalidate notes that what the slots can carry has changed.
func (s *Subscriber) Invalidate() { s.layout.stale, s.stale = true, true }

// Request asks for another decision, because of a change that was asked for at the time requested: a choice, or that
// slots be used. It returns the time until which the decision is put off, zero if it is to be made at once.
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

// Deferred returns the time until which a decision is put off, false if none is put off.
func (s *Subscriber) Deferred(interval time.Duration) (time.Time, bool) {
	if !s.deferred {
		return time.Time{}, false
	}
	return s.spaced(interval), true
}

// spaced returns when the next decision may be made for a receiver that asks for one, given the interval of ticks.
func (s *Subscriber) spaced(interval time.Duration) time.Time {
	return s.last.at.Add(max(AllocationSpacing, min(SpacingFactor*s.last.took, interval)))
}

// Decide decides what the slots carry, if anything has changed that matters, and tells the slots. It returns what the
// client is to be told at once.
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

// due returns whether enough has changed since the last decision, given what the qualities that are sent cost by now.
func (s *Subscriber) due(
	now time.Time, granted, carried volumetric.Bitrate, changes Changes, rtt time.Duration,
) urgency {
	switch {
	case s.stale, s.last.changes.Offered != changes.Offered,
		carried > granted && (granted < s.last.granted || s.last.changes.Rates != changes.Rates):
		return dueNow
	case s.last.changes.Rates != changes.Rates:
		return dueSometime
	case s.last.rate >= s.last.wanted && granted >= s.last.wanted && !(s.sparing && s.looks()):
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

// decideVideo has the allocator decide about video.
func (s *Subscriber) decideVideo(
	a *applier, now time.Time, room *Scheduler, granted volumetric.Bitrate, path egress.Path,
) {
	if s.layout.stale {
		s.layout.lay(s.Slots.all, &s.scene)
	}
	began := room.Clock()
	result := s.allocate(room.Allocator, now, granted, path.RTT)
	took := room.Clock().Sub(began)
	s.last.took = took
	room.spend(took, granted)
	// The first packets are followed by probes, which go up to the wanted rate.
	wanted := float64(result.Wanted+s.comingRate()) * (1 + s.Overhead(path))
	s.link.Want(volumetric.Bitrate(wanted) + s.audioRate())
	s.layout.decisions(result.Tiles, s.Choices, a.apply)
}

// allocate fills the scene in and has the allocator decide. The result is valid until the next call.
func (s *Subscriber) allocate(
	a Allocator, now time.Time, granted volumetric.Bitrate, rtt time.Duration,
) allocate.Result {
	s.layout.fill(&s.scene, s.Choices, s.arranged)
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

// comingRate returns what video will cost, by the receiver's choices, on slots that are not ready yet. For a client
// that has just come, that is all video.
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

// chosenRate returns what a target costs by the receiver's choice, as far as the publisher sends it.
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

// followChoices has slots carry what the receiver chose and the publisher sends: the slots of audio, which comes before
// everything else, and all slots if nothing is known of the link, nor will be: of clients that do not report.
func (s *Subscriber) followChoices(a *applier, known bool) {
	for _, slot := range s.Slots.all {
		if !slot.Ready() || known && slot.Kind == volumetric.KindVideo {
			continue
		}
		a.apply(s.chosen(slot))
	}
}

// chosen returns what a slot carries by the receiver's choice, as far as the publisher sends it.
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

// Expect has publishers begin with what slots will carry that have just been assigned: the lowest quality, as a link
// begins with little.
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
