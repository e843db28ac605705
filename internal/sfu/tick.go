package sfu

import (
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
)

// wake is the request that the room makes itself when its alarm rings.
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

// unwatchedInterval is how often rates are measured while nobody receives, so that they are known when somebody comes.
const unwatchedInterval = 200 * time.Millisecond

// measureUnwatched measures what is sent though nobody receives: before the first receiver comes, and until publishers
// have been told to pause. Nobody needs parity then.
func (r *Room) measureUnwatched() {
	coming := false
	for _, p := range r.participants {
		for _, publication := range p.publications {
			publication.Measure(r.now)
			publication.Demand.Parity.Reset()
			publication.Demand.CheckParity(r.now)
			coming = coming || !publication.Demand.AllPaused()
		}
	}
	if coming {
		r.wakeBy(r.now.Add(unwatchedInterval))
	}
}

// attend does what is due for one publication.
func (r *Room) attend(owner *participant, p *publication) {
	if p.Place.Pending() {
		r.passPose(owner, p)
	}
	if p.silent {
		r.announceBegun(owner, p)
	}
	r.attendDemand(p.Demand)
}

// tick looks whether anything has changed that calls for other qualities. It reports false if it has not come to every
// receiver, and is to be called again when other requests have had their turn.
func (r *Room) tick() (complete bool) {
	r.scheduler.Tick(r.now)
	for _, p := range r.participants {
		for _, publication := range p.publications {
			if publication.Measure(r.now) {
				r.scheduler.Changes.Rates++
			}
			publication.Demand.Parity.Reset()
		}
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
		p.tellSlots(p.subscriber.Reasons(r.now))
		if m := p.subscriber.Bandwidth(r.now); m != nil {
			p.send(m)
		}
	}
	for _, p := range r.participants {
		for _, publication := range p.publications {
			publication.Demand.CheckParity(r.now)
		}
	}
	return complete
}

// receives reports whether media may be sent to the participant.
func (p *participant) receives() bool { return p.receive && p.connected }

// refresh decides what the slots carry, because of something that was asked for at that time: a choice, or that slots
// be used.
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

// decide decides what the slots carry, if anything has changed that matters, and tells the client.
func (p *participant) decide() {
	p.tellSlots(p.subscriber.Decide(p.room.now, &p.room.scheduler))
}

// tellSlots tells the client what slots carry.
func (p *participant) tellSlots(sending []signal.SlotQuality) {
	if len(sending) > 0 {
		p.send(&signal.Sending{Slots: sending})
	}
}
