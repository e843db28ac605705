package sfu

import (
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// orders gives slots what was decided, and gathers what the client has to be told of it at once.
type orders struct {
	participant *participant
	requested   time.Time
	asked       bool
	sending     []signal.SlotQuality
}

// give tells a slot what to carry. That it is off has no first packet, and what changes nothing has none either.
func (o *orders) give(given order) {
	s := given.slot
	before := s.reason
	news := s.carry(given.quality, given.reason, o.requested, o.asked)
	if news || s.reason != before {
		o.participant.room.node.metrics.Decided(given.reason)
	}
	off := news && given.quality == volumetric.QualityOff
	switch {
	case off || o.asked && s.unexplained():
		o.sending = append(o.sending, s.explain())
	case s.unexplained():
		o.participant.reception.unexplained = true
	}
}

// tell sends what was gathered.
func (o *orders) tell() {
	if len(o.sending) > 0 {
		o.participant.send(&signal.Sending{Slots: o.sending})
	}
}

// tellSending repeats to a client that came back what is being sent, as far as that was told before: it may have been told nobody.
func (p *participant) tellSending() {
	o := &orders{participant: p}
	for _, s := range p.slots.slots {
		if s.ready() && s.selected && s.told != "" {
			generation := signal.SlotGeneration{MID: s.mid, Generation: s.generation}
			o.sending = append(o.sending, signal.SlotQuality{SlotGeneration: generation, Quality: s.showing, Reason: s.told, OffFrames: s.offFrames})
			s.offNews = false
		}
	}
	o.tell()
}

// tellReasons tells the client, once in a while, what goes on for another reason than before.
func (p *participant) tellReasons() {
	r := p.reception
	if !r.unexplained || p.room.now.Sub(r.reasoned) < reasonInterval {
		return
	}
	r.unexplained, r.reasoned = false, p.room.now
	o := &orders{participant: p}
	for _, s := range p.slots.slots {
		if s.unexplained() {
			o.sending = append(o.sending, s.explain())
		}
	}
	o.tell()
}

// unexplained says whether the slot goes on as it was for another reason than the client knows.
func (s *slot) unexplained() bool {
	return s.ready() && s.selected && s.showing == s.quality && s.told != s.reason
}

// explain says what the slot carries, and why.
func (s *slot) explain() signal.SlotQuality {
	s.told = s.reason
	return signal.SlotQuality{
		SlotGeneration: signal.SlotGeneration{MID: s.mid, Generation: s.generation}, Quality: s.quality, Reason: s.reason,
	}
}

// tellBandwidth tells the client what the server thinks of its link.
func (p *participant) tellBandwidth() {
	r := p.reception
	path := r.link.Path()
	if !path.Known {
		return
	}
	if m := r.bandwidth(p.room.now, path.Estimate); m != nil {
		p.send(m)
	}
}
