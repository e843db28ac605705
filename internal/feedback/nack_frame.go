package feedback

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Expect records that the frame of the packet just received ends with the number upTo, so that a missing end is
// detected even without a later packet. It is ignored if the packet was not the newest: the newest packet determines
// the end, also if the end becomes smaller.
func (g *NACKGenerator) Expect(upTo int64, _ time.Time) {
	if !g.newest || upTo-g.highest > int64(g.cfg.MaxMissing) {
		return
	}
	if upTo > g.expected {
		// The first packet of a newer frame.
		g.begun = g.last
	}
	g.expected = max(upTo, g.highest)
	if took := g.last - g.begun; g.highest == g.expected && took > 0 && took <= g.cfg.LongDeadline {
		// The end of a frame that arrived in order: its duration. The maximum counts and decays slowly. A duration
		// beyond LongDeadline includes a pause: waiting that long for the ends of others would give all of them up.
		g.length = max(took, g.length-g.length/16)
	}
	if g.known <= g.expected {
		return
	}
	// The sender dropped the rest of an earlier frame, and its numbers belong to this frame.
	for n := len(g.missing); n > 0 && g.missing[n-1].sequence > g.expected; n-- {
		if !g.missing[n-1].arrived {
			g.live--
		}
		g.missing = g.missing[:n-1]
	}
	g.known = g.expected
	g.fresh = min(g.fresh, len(g.missing))
	if g.live == 0 {
		g.clear()
	}
}

// Hold records that parity of the newest frame is still expected, which may replace missing packets: numbers from from
// on are requested only after a silence (as for the end of a frame), or when the hold changes. Each call replaces the
// previous one.
func (g *NACKGenerator) Hold(from int64) { g.held = from }

// Release ends a Hold: the frame's last packet, or a newer frame, has arrived.
func (g *NACKGenerator) Release() { g.held = math.MaxInt64 }

// Spare records that the numbers from first to last are not needed, because their frame is complete. Those missing now
// are not requested any more, and count as Spared if they do not arrive.
func (g *NACKGenerator) Spare(first, last int64) {
	if g.live == 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(g.missing, first,
		func(m missing, sequence int64) int { return cmp.Compare(m.sequence, sequence) })
	for ; i < len(g.missing) && g.missing[i].sequence <= last; i++ {
		g.missing[i].spared = true
	}
}

// requestTime returns the earliest time of the first request for a packet.
func (g *NACKGenerator) requestTime(m *missing) time.Duration {
	at := m.next
	if g.advances-m.advances >= uint64(g.cfg.ReorderPackets) {
		at = min(at, g.last)
	}
	if m.sequence >= g.held && !m.spared {
		at = max(at, g.tailDue())
	}
	return at
}

// quiet returns the silence after which the rest of a frame counts as missing: longer than TailWait if packets are
// usually far apart. A frame of two packets at 15 frames per second is paced with 13 ms between them.
func (g *NACKGenerator) quiet() time.Duration {
	return min(max(2*g.spacing, g.cfg.TailWait), 4*g.cfg.TailWait)
}

// tailDue returns the time at which the rest of the newest frame counts as missing: after the usual duration of the
// stream's frames, of any size, and a quarter for jitter. When a stream changes from frames of many packets to frames
// of few, its packets are suddenly far apart.
func (g *NACKGenerator) tailDue() time.Duration {
	if g.length == 0 {
		return g.last + g.quiet()
	}
	return max(g.last+g.cfg.TailWait, g.begun+g.length+g.length/4)
}
