package sfu

import (
	"time"

	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/pkg/signal"
)

// wake is the request of the room's own alarm.
type wake struct{}

// wakeBy wakes the room at the given time at the latest.
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
	r.audience.send()
	for publication := range r.Publications {
		r.attend(publication)
	}
	for _, p := range r.participants {
		if !p.receives() {
			continue
		}
		receiving = true
		due, deferred := p.subscriber.Deferred(r.node.config.AllocationInterval)
		switch {
		case !deferred:
		case r.now.Before(due):
			r.wakeBy(due)
		default:
			p.decide()
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

// unwatchedInterval is the interval of rate measurements while there is no receiver, so that rates are known when a
// receiver joins.
const unwatchedInterval = 200 * time.Millisecond

// measureUnwatched measures tracks while there is no receiver: before the first receiver joins, and until publishers
// have paused. Then no parity is needed.
func (r *Room) measureUnwatched() {
	coming := false
	for publication := range r.Publications {
		if publication.Measure(r.now) {
			r.span.measured(publication)
		}
		publication.Demand.Parity.Reset()
		publication.Demand.CheckParity(r.now)
		coming = coming || !publication.Demand.AllPaused()
	}
	if coming {
		r.wakeBy(r.now.Add(unwatchedInterval))
	}
}

// attend performs the steps that are due for one publication.
func (r *Room) attend(p *presence.Publication) {
	if p.Place.Pending() {
		r.forwardPose(p)
	}
	if p.Silent {
		r.announceBegun(r.participants[p.Ref.Participant], p)
	}
	r.demands.update(p.Demand)
}

// tick checks whether other qualities are needed. tick reports false if time did not suffice for all receivers. The
// caller then calls it again after other requests.
func (r *Room) tick() (complete bool) {
	r.scheduler.Tick(r.now)
	for publication := range r.Publications {
		if publication.Measure(r.now) {
			r.span.measured(publication)
			r.scheduler.Changes.Rates++
		}
		publication.Demand.Parity.Reset()
	}
	r.scheduler.Begin()
	complete = true
	for _, p := range r.participants {
		if !p.receives() {
			continue
		}
		p.subscriber.NeedParity()
		p.subscriber.Sample(r.now)
		if complete = complete && r.scheduler.InTime(); !complete {
			continue
		}
		p.decide()
		p.sendSlotQualities(p.subscriber.Reasons(r.now))
		if m := p.subscriber.Bandwidth(r.now); m != nil {
			p.send(m)
		}
	}
	for publication := range r.Publications {
		publication.Demand.CheckParity(r.now)
	}
	return complete
}

// receives reports whether media may be sent to the participant.
func (p *participant) receives() bool { return p.receive && p.connected }

// refresh decides the qualities after a request of the client: a choice, or slots that became ready. requested is the
// time of the request.
func (p *participant) refresh(requested time.Time) {
	if !p.connected {
		return
	}
	until := p.subscriber.Request(requested, p.room.now, p.room.node.config.AllocationInterval)
	if !until.IsZero() {
		p.room.wakeBy(until)
		return
	}
	p.decide()
}

// decide decides the qualities of the slots if there are relevant changes, and notifies the client.
func (p *participant) decide() {
	p.sendSlotQualities(p.subscriber.Decide(p.room.now, &p.room.scheduler))
}

// sendSlotQualities sends the client the qualities of slots.
func (p *participant) sendSlotQualities(sending []signal.SlotQuality) {
	if len(sending) > 0 {
		p.send(&signal.Sending{Slots: sending})
	}
}
