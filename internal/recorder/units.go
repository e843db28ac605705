package recorder

import (
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
)

const (
	// reorderTime is the time for which the packets after a gap wait for the missing packets: three requests at a
	// round-trip time of 80 ms.
	reorderTime = 250 * time.Millisecond
	// maxHeld bounds the packets that wait for a missing packet, and maxUnit the packets of one frame: an image of 1 MB
	// has 900.
	maxHeld = 4096
	maxUnit = 16384
)

// units joins the packets of a track without payload v1 to units: each packet of audio, and the packets of one image in
// other cases. units is pure: it is stepped with the arrival times of packets, in nanoseconds since the engine's start.
type units struct {
	audio bool
	// held are packets after next, by sequence number, with references.
	held    []*packetlog.Packet
	started bool
	next    int64
	// building are the packets of the present image, with references. broken is set if a packet of it is missing.
	building []*packetlog.Packet
	broken   bool
	// ready are the packets of a complete unit, until the next call.
	ready []*packetlog.Packet
	// incomplete counts units with missing packets.
	incomplete uint64
}

// add takes a packet. The caller keeps its reference.
func (u *units) add(p *packetlog.Packet) {
	if !u.started {
		u.started, u.next = true, p.Facts.Sequence
	}
	if p.Facts.Sequence < u.next {
		return
	}
	at, present := slices.BinarySearchFunc(u.held, p.Facts.Sequence,
		func(q *packetlog.Packet, sequence int64) int { return int(q.Facts.Sequence - sequence) })
	if present {
		return
	}
	p.Retain()
	u.held = slices.Insert(u.held, at, p)
}

// take returns the packets of the next complete unit, nil if there is none at now. The packets are valid until the next
// call.
func (u *units) take(now int64) []*packetlog.Packet {
	u.ready = released(u.ready)
	for len(u.held) > 0 {
		p := u.held[0]
		if p.Facts.Sequence != u.next {
			if now-p.Order < int64(reorderTime) && len(u.held) < maxHeld {
				return nil
			}
			u.skip()
		}
		// An image without a marker ends before the first packet of the next one.
		if len(u.building) > 0 && p.Facts.Timestamp != u.building[0].Facts.Timestamp && u.end() {
			return u.ready
		}
		u.held = slices.Delete(u.held, 0, 1)
		u.next = p.Facts.Sequence + 1
		if len(p.Payload) == 0 || len(u.building) == maxUnit {
			// Padding, or an image that is too long.
			u.broken = u.broken || len(u.building) == maxUnit
			p.Release()
			continue
		}
		u.building = append(u.building, p)
		if (u.audio || p.Ends()) && u.end() {
			return u.ready
		}
	}
	return nil
}

// skip gives up the missing packets before the first held packet.
func (u *units) skip() {
	u.next = u.held[0].Facts.Sequence
	if u.audio {
		u.incomplete++
		return
	}
	u.broken = true
}

// end ends the present image and reports whether it is complete. Its packets are then ready.
func (u *units) end() bool {
	broken := u.broken
	u.broken = false
	if broken {
		u.incomplete++
		u.building = released(u.building)
		return false
	}
	u.building, u.ready = u.ready, u.building
	return true
}

// close releases all packets.
func (u *units) close() {
	u.held, u.building, u.ready = released(u.held), released(u.building), released(u.ready)
}

// released releases packets and returns the empty list.
func released(packets []*packetlog.Packet) []*packetlog.Packet {
	for _, p := range packets {
		p.Release()
	}
	clear(packets)
	return packets[:0]
}
