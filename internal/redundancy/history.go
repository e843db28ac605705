package redundancy

import "time"

// historyPackets is the number of sent packets that are kept: 0.4 s at 100 Mbit/s in packets of 1,200 bytes, and 4 s at
// 10 Mbit/s. They take 160 kB for a peer with a second path.
const historyPackets = 1 << 12

// history remembers the latest packets sent. Positions count all packets, from 1 on.
type history struct {
	start   time.Time
	last    uint64
	packets [historyPackets]sent
	// sums are the counts of all packets sent.
	sums [Paths]sum
}

// sent is a packet that has left.
type sent struct {
	ssrc     uint32
	sequence uint16
	primary  uint8
	// copied is set if the packet left on both paths, media if its loss would be repaired.
	copied, media bool
	// at is the departure in µs since the start.
	at int64
	// sums are the counts of packets sent on each path, including this one.
	sums [Paths]sum
}

// sum counts packets and bytes, modulo 2^32.
type sum struct{ packets, bytes uint32 }

// add records a packet.
func (h *history) add(p *Packet, primary uint8, copied bool, now time.Time) {
	for path := range h.sums {
		if copied || path == int(primary) {
			h.sums[path].packets++
			h.sums[path].bytes += uint32(p.Size)
		}
	}
	h.last++
	h.packets[h.last%historyPackets] = sent{
		ssrc: p.SSRC, sequence: p.Sequence, primary: primary, copied: copied,
		media: p.Class != Padding && p.Class != Repair, at: h.micros(now), sums: h.sums,
	}
}

// find returns the position of a packet. It searches from the newest packet on: the packet that a report names was sent
// about a round trip ago, 50 packets at 10 Mbit/s and 60 ms. A packet that was never sent takes 10 µs.
func (h *history) find(ssrc uint32, sequence uint16) (position uint64, ok bool) {
	for position := h.last; position >= h.oldest(); position-- {
		if p := &h.packets[position%historyPackets]; p.sequence == sequence && p.ssrc == ssrc {
			return position, true
		}
	}
	return 0, false
}

// at returns the packet at a position, nil if the packet is no longer kept or not sent yet.
func (h *history) at(position uint64) *sent {
	if position < h.oldest() || position > h.last {
		return nil
	}
	return &h.packets[position%historyPackets]
}

// oldest returns the position of the oldest packet that is kept.
func (h *history) oldest() uint64 {
	if h.last < historyPackets {
		return 1
	}
	return h.last - historyPackets + 1
}

// micros converts a time to µs since the start.
func (h *history) micros(now time.Time) int64 { return now.Sub(h.start).Microseconds() }

// time is the inverse of micros.
func (h *history) time(at int64) time.Time {
	return h.start.Add(time.Duration(at) * time.Microsecond)
}
