package egress

import (
	"slices"

	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
)

// padding says where the packets of a probe come from once no media waits: they are sent again, by the RTX stream of the slot that they were sent on.
type padding struct {
	slot *Slot
	// number is that of the next packet in the slot.
	number uint16
}

// pad sends padding as far as the probe under way asks for it in this tick. Media that the writer has yet to take may do as well.
func (w *writer) pad(r *Receiver) {
	r.sender.Pad(func() bool { return len(w.ready) == 0 && w.repeat(r) })
}

// repeat sends a recent packet again: of the slot at hand the one before the last, or else the newest of one that has any. A receiver without RTX gets none.
func (w *writer) repeat(r *Receiver) bool {
	p := &r.estimation.padding
	if p.slot != nil && w.repeatNumber(p.slot, p.number) {
		p.number--
		return true
	}
	slots := r.all()
	first := slices.Index(slots, p.slot) + 1
	for i := range slots {
		s := slots[(first+i)%len(slots)]
		if s.sent.packets == 0 || !w.repeatNumber(s, s.header.SequenceNumber) {
			continue
		}
		p.slot, p.number = s, s.header.SequenceNumber-1
		return true
	}
	return false
}

// repeatNumber sends the packet again that a number of the slot stands for, if it is still in the cache.
func (w *writer) repeatNumber(s *Slot, number uint16) bool {
	p, _, ok := w.find(repair{s, number})
	if !ok {
		return false
	}
	defer p.Release()
	return !p.track.Audio() && w.resend(s, number, p.track, p.Packet, packetlog.Probe) == counters.NackedAnswered
}
