package ingress

import (
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/transport"
)

// maxEarly bounds the packets that wait: 16 Mbit/s for 150 ms with packets of 1,200 bytes, 0.3 MB. The largest
// datagrams (icemux.MaxDatagram) take 0.5 MB.
const maxEarly = 256

// early has the packets of a new connection that arrived before their SSRCs were bound. A publisher sends as soon as
// the connection is established, and a room that is busy binds the tracks later. The tracks of one description are
// bound together, so that packets are kept until limit after the first binding. The mutex of the ingress guards early.
type early struct {
	// limit is the age up to which a packet waits until its SSRC is bound: the deadline of repairs, after which
	// receivers give up a frame.
	limit time.Duration
	// packets are in the order of their arrival.
	packets []earlyPacket
	// until is the time from which on no packets are kept, zero before the first binding.
	until time.Time
}

// earlyPacket is a packet with copies of its content and its info.
type earlyPacket struct {
	ssrc   uint32
	packet []byte
	info   transport.PacketInfo
}

// keep keeps a packet of an SSRC that is not bound. A packet beyond maxEarly is dropped: when the SSRC is bound, the
// packet is requested like a lost packet.
func (e *early) keep(ssrc uint32, packet []byte, info *transport.PacketInfo) {
	if over := e.expire(info.At); !over && len(e.packets) < maxEarly {
		e.packets = append(e.packets, earlyPacket{ssrc, slices.Clone(packet), *info})
	}
}

// expire removes the packets that are older than limit. expire reports whether no more packets are kept, and
// removes all of them then.
func (e *early) expire(now time.Time) (over bool) {
	if !e.until.IsZero() && !now.Before(e.until) {
		e.packets = nil
		return true
	}
	expired := 0
	for expired < len(e.packets) && now.Sub(e.packets[expired].info.At) > e.limit {
		expired++
	}
	e.packets = slices.Delete(e.packets, 0, expired)
	return false
}

// bound records a binding.
func (e *early) bound(now time.Time) {
	if e.until.IsZero() {
		e.until = now.Add(e.limit)
	}
}

// take removes and returns the packets of an SSRC that is about to be bound.
func (e *early) take(ssrc uint32, now time.Time) (taken []earlyPacket) {
	e.expire(now)
	rest := e.packets[:0]
	for _, p := range e.packets {
		if p.ssrc == ssrc {
			taken = append(taken, p)
		} else {
			rest = append(rest, p)
		}
	}
	clear(e.packets[len(rest):])
	e.packets = rest
	return taken
}
