package redundancy

import "time"

const (
	// historyPackets is the number of sent packets that are kept: 0.4 s at 100 Mbit/s in packets of 1,200 bytes, and 4
	// s at 10 Mbit/s. They take 160 kB for a peer with a second path.
	historyPackets = 1 << 12
	// historyBuckets is the number of buckets in which a packet is found: four packets in each on average. They take 4
	// kB.
	historyBuckets = historyPackets / 4
)

// history remembers the latest packets sent. Positions count all packets, from 1 on.
type history struct {
	start   time.Time
	last    uint64
	packets [historyPackets]sent
	// newest is the position of the newest packet in each bucket, modulo 2^32.
	newest [historyBuckets]uint32
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
	// before is the position of the packet before in the same bucket, modulo 2^32.
	before uint32
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
	bucket := &h.newest[bucketOf(p.SSRC, p.Sequence)]
	h.packets[h.last%historyPackets] = sent{
		ssrc: p.SSRC, sequence: p.Sequence, primary: primary, copied: copied,
		media: p.Class != Padding && p.Class != Repair, before: *bucket, at: h.micros(now), sums: h.sums,
	}
	*bucket = uint32(h.last)
}

// bucketOf returns the bucket of a packet. The packets of one stream fill all buckets evenly, and the streams begin at
// different ones. This side chooses SSRCs and sequence numbers, so no peer can fill one bucket.
func bucketOf(ssrc uint32, sequence uint16) uint32 {
	return (ssrc*2654435761>>16 + uint32(sequence)) % historyBuckets
}

// find returns the position of a packet, the newest one if several have the same number.
func (h *history) find(ssrc uint32, sequence uint16) (position uint64, ok bool) {
	kept := h.last - h.oldest() + 1
	// The positions of a bucket decrease, so the first one that is not kept ends the search. After 2^32 packets, an
	// unused bucket continues with the packets of another.
	for in := h.newest[bucketOf(ssrc, sequence)]; ; {
		age := uint64(uint32(h.last) - in)
		if age >= kept {
			return 0, false
		}
		p := &h.packets[(h.last-age)%historyPackets]
		if p.sequence == sequence && p.ssrc == ssrc {
			return h.last - age, true
		}
		in = p.before
	}
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
