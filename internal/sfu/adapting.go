package sfu

import (
	"time"

	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// wake is what the room does of its own accord.
type wake struct{}

// wakeBy has the room wake at that time at the latest.
func (r *Room) wakeBy(at time.Time) {
	if !r.wakeAt.IsZero() && !at.Before(r.wakeAt) {
		return
	}
	r.wakeAt = at
	r.alarm.Reset(max(0, at.Sub(r.now)))
}

// apply implements request.
func (wake) apply(r *Room) {
	r.wakeAt = time.Time{}
	receiving := false
	for _, p := range r.participants {
		for _, publication := range p.publications {
			r.attend(p, publication)
		}
		if !p.receives() {
			continue
		}
		receiving = true
		if !p.reception.deferred {
			continue
		}
		if due := p.reception.spaced(r.node.config.AllocationInterval); r.now.Before(due) {
			r.wakeBy(due)
		} else {
			p.adapt()
		}
	}
	if !receiving {
		r.measureUnwatched()
		return
	}
	if !r.now.Before(r.nextTick) {
		r.nextTick = r.now
		if r.tick() {
			r.nextTick = r.now.Add(r.node.config.AllocationInterval)
		}
	}
	r.wakeBy(r.nextTick)
}

// unwatchedInterval is how often rates are measured while nobody receives, so that they are known when somebody comes.
const unwatchedInterval = 200 * time.Millisecond

// measureUnwatched measures what is sent though nobody receives: before the first comes, and until publishers have been told to pause. Nobody needs parity
// then.
func (r *Room) measureUnwatched() {
	coming := false
	for _, p := range r.participants {
		for _, publication := range p.publications {
			publication.measure(r.now)
			publication.wanting.parityNeeded = 0
			publication.checkParity(r.now)
			coming = coming || publication.suppression == nil || publication.suppression.pausedCount() < len(publication.levels.rates)
		}
	}
	if coming {
		r.wakeBy(r.now.Add(unwatchedInterval))
	}
}

// attend does for one publication what is due.
func (r *Room) attend(owner *participant, p *publication) {
	if p.place.pending {
		r.passPose(owner, p)
	}
	if p.silent {
		r.hear(owner, p)
	}
	s := p.suppression
	if s == nil {
		return
	}
	switch {
	case s.due.IsZero():
	case r.now.Before(s.due):
		r.wakeBy(s.due)
	default:
		p.unsettle()
	}
	if w := &p.wanting; w.pausedRate > 0 {
		if due := w.accounted.Add(accountInterval); r.now.Before(due) {
			r.wakeBy(due)
		} else {
			r.account(p)
		}
	}
}

// receives says whether media may be sent to the participant.
func (p *participant) receives() bool { return p.receive && p.connected }

// tick looks whether anything has changed that calls for other qualities. It reports false where it has not come to everybody, and is to be called again
// when others have had their turn.
func (r *Room) tick() bool {
	share := time.Duration(improvingShare * float64(r.node.config.AllocationInterval))
	r.credit = min(max(r.credit, -largestDebt)+time.Duration(improvingShare*float64(r.now.Sub(r.ticked))), share)
	r.ticked = r.now
	for _, p := range r.participants {
		for _, publication := range p.publications {
			if publication.measure(r.now) {
				r.around.rates++
			}
			publication.wanting.parityNeeded = 0
		}
	}
	began, complete := r.clock(), true
	for _, p := range r.participants {
		if !p.receives() {
			continue
		}
		p.needParity()
		if p.reception.history.due(r.now) {
			p.reception.history.note(r.now, p.reception.link.Path(), p.reception.rate)
		}
		if complete = complete && r.clock().Sub(began) < tickLimit; !complete {
			continue
		}
		p.adapt()
		p.tellReasons()
		p.tellBandwidth()
	}
	for _, p := range r.participants {
		for _, publication := range p.publications {
			publication.checkParity(r.now)
		}
	}
	return complete
}

// refresh decides anew what the slots carry, because of something that was asked for at that time: a choice, or that slots be used.
func (p *participant) refresh(requested time.Time) {
	if !p.connected {
		return
	}
	r := p.reception
	r.layout.stale, r.stale = true, true
	if r.requested.IsZero() || requested.Before(r.requested) {
		r.requested = requested
	}
	if due := r.spaced(p.room.node.config.AllocationInterval); r.known && p.room.now.Before(due) {
		r.deferred = true
		p.room.wakeBy(due)
		return
	}
	p.adapt()
}

// adapt decides what the slots carry, if anything has changed that matters.
func (p *participant) adapt() {
	r, room := p.reception, p.room
	path := r.link.Path()
	granted, known := r.step(room.now, path, p.audioRate())
	due := notDue
	switch {
	case known:
		due = r.due(room.now, granted, p.carriedRate(volumetric.KindVideo), room.around, path.RTT)
	case r.stale || r.around.offered != room.around.offered:
		due = dueNow
	}
	if due == notDue || due == dueSometime && room.credit <= 0 {
		return
	}
	o := &orders{participant: p, requested: r.requested, asked: !r.requested.IsZero()}
	if !o.asked {
		o.requested = room.now
	}
	r.requested = time.Time{}
	r.around = room.around
	p.followChoices(o, known)
	if known {
		p.allocate(o, granted, path)
	} else {
		r.stale, r.deferred = false, false
	}
	o.tell()
}

// allocate has the allocator decide about video.
func (p *participant) allocate(o *orders, granted volumetric.Bitrate, path forward.Path) {
	r, room := p.reception, p.room
	if r.layout.stale {
		r.layout.lay(p.slots.slots, &r.scene)
	}
	began := room.clock()
	result := r.allocate(room.allocator, room.now, granted, path.RTT, p.choices)
	took := room.clock().Sub(began)
	r.took = took
	room.credit -= took
	room.node.metrics.Allocated(took, granted)
	// The first packets are followed by probes, which go by what is wanted.
	wanted := float64(result.Wanted+p.comingRate()) * (1 + r.overhead(path))
	r.link.Want(volumetric.Bitrate(wanted) + p.audioRate())
	r.layout.orders(result.Tiles, p.choices, o.give)
}

// comingRate is what video will cost, by the receiver's choices, on slots that are not ready yet: of a client that has just come, all of it.
func (p *participant) comingRate() volumetric.Bitrate {
	var sum volumetric.Bitrate
	for _, s := range p.slots.slots {
		if s.target != nil && s.kind == volumetric.KindVideo && !s.ready() {
			sum += p.chosenRate(s.target)
		}
	}
	for _, t := range p.slots.waiting[volumetric.KindVideo] {
		sum += p.chosenRate(t)
	}
	return sum
}

// chosenRate is what a target costs by the receiver's choice, as far as the publisher sends it.
func (p *participant) chosenRate(t *target) volumetric.Bitrate {
	publication := t.publication
	quality := decide(p.choices.of(t.tile), &publication.description, t.description)
	if quality == volumetric.QualityOff {
		return 0
	}
	if t.description == nil {
		quality = publication.levels.available(t.tile.Tile, quality)
	}
	return publication.levels.rate(t.tile.Tile, quality)
}

// followChoices has slots carry what the receiver chose and the publisher sends: those of audio, which comes before everything else, and
// all of them where nothing is known of the link, nor will be: of clients that do not report.
func (p *participant) followChoices(o *orders, known bool) {
	for _, s := range p.slots.slots {
		if !s.ready() || known && s.kind == volumetric.KindVideo {
			continue
		}
		o.give(p.chosen(s))
	}
}

// chosen is what a slot carries by the receiver's choice, as far as the publisher sends it.
func (p *participant) chosen(s *slot) order {
	publication, selection := s.target.publication, p.choices.of(s.target.tile)
	decided := decide(selection, &publication.description, s.target.description)
	if s.target.description != nil {
		return order{s, decided, reasonFor(selection)}
	}
	quality := publication.levels.available(s.target.tile.Tile, decided)
	if quality != decided {
		return order{s, quality, signal.ReasonAuto}
	}
	return order{s, quality, reasonFor(selection)}
}

// expectSlots has publishers begin with what slots will carry that have just been assigned. That is the lowest quality, as a link begins with little.
func (p *participant) expectSlots() {
	for _, s := range p.slots.slots {
		if s.target == nil || s.selected {
			continue
		}
		quality := p.chosen(s).quality
		if s.target.description == nil {
			quality = min(quality, 0)
		}
		s.expect(quality)
	}
}

// carriedRate is what the tracks of a kind cost that the slots were told to carry, in RTP payload.
func (p *participant) carriedRate(kind volumetric.Kind) volumetric.Bitrate {
	var sum volumetric.Bitrate
	for _, s := range p.slots.slots {
		if s.kind == kind && s.target != nil && s.selected && s.quality != volumetric.QualityOff {
			sum += s.target.publication.levels.rate(s.target.tile.Tile, s.quality)
		}
	}
	return sum
}

// audioRate is what audio takes of the receiver's link.
func (p *participant) audioRate() volumetric.Bitrate {
	var headers volumetric.Bitrate
	for _, s := range p.slots.slots {
		if s.kind == volumetric.KindAudio && s.selected && s.quality != volumetric.QualityOff {
			headers += audioHeaders
		}
	}
	return p.carriedRate(volumetric.KindAudio) + headers
}
