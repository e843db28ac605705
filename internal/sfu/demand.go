package sfu

import (
	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/pkg/signal"
)

// demands are the demand for the publications of a room. The room's goroutine owns them.
type demands struct {
	room *Room
	// unsettled has the publications whose demand may have changed.
	unsettled demand.Queue
}

// settle sends publishers the changes of the demand. settle runs after every request, so that a suppressed quality is
// requested as soon as a receiver needs the quality.
func (s *demands) settle() {
	r := s.room
	if s.unsettled.Len() == 0 {
		return
	}
	told := make(map[*participant][]signal.WantedPublication)
	s.unsettled.Each(func(d *demand.Publication) {
		p := r.Publication(d.Ref)
		if p == nil || p.Demand != d {
			return
		}
		changed := d.Step(r.now)
		for _, track := range d.Resumed() {
			p.Tracks[track].Expect()
		}
		for _, track := range d.Dismissed() {
			p.Tracks[track].Pause()
		}
		if d.Relayed() {
			if d.SettleParity(r.now) || changed {
				r.span.take(p)
			}
			return
		}
		if changed {
			s.account(d)
			r.node.metrics.TracksPaused(d.CountPaused(p.Levels.Rate))
		}
		if d.SettleParity(r.now) || changed {
			owner := r.participants[d.Ref.Participant]
			told[owner] = append(told[owner], d.Message())
		}
		if due := d.Due(); !due.IsZero() {
			r.wakeBy(due)
		}
	})
	for owner, publications := range told {
		owner.send(&signal.Wanted{Publications: publications})
	}
}

// account adds the bits that a publisher did not send to the metrics.
func (s *demands) account(d *demand.Publication) {
	r := s.room
	if !d.Suppressible() {
		return
	}
	if bits := d.Account(r.now); bits > 0 {
		r.node.metrics.Suppressed(bits)
	}
	if d.Saves() {
		r.wakeBy(r.now.Add(demand.AccountInterval))
	}
}

// end ends the accounting of a publication that ends.
func (s *demands) end(d *demand.Publication) {
	s.account(d)
	s.room.node.metrics.TracksPaused(d.EndPausing())
}

// update performs the steps that are due in the demand for a publication.
func (s *demands) update(d *demand.Publication) {
	r := s.room
	if !d.Suppressible() {
		return
	}
	switch due := d.Due(); {
	case due.IsZero():
	case r.now.Before(due):
		r.wakeBy(due)
	default:
		d.Changed()
	}
	if d.Saves() {
		if due := d.AccountDue(); r.now.Before(due) {
			r.wakeBy(due)
		} else {
			s.account(d)
		}
	}
}

// sendWanted repeats the wanted tracks of suppressible publications to a publisher that has resumed.
func (p *participant) sendWanted() {
	var all []signal.WantedPublication
	for _, publication := range p.Publications {
		if publication.Demand.Suppressible() {
			all = append(all, publication.Demand.Message())
		}
	}
	if len(all) > 0 {
		p.send(&signal.Wanted{Publications: all})
	}
}
