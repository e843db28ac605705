package feedback

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Expect tells that the frame of the packet just received ends with the number upTo, so that its end is missed even if no later packet comes. Of a
// packet that is not the newest it tells nothing new, and is ignored: the newest packet's word holds, also when it takes back an earlier one.
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
		// The end of a frame that was sent in order: so long do frames take, whatever their size. The largest one counts, and is slowly forgotten. What took
		// longer than any frame is worth repairing met a pause: waiting that long for the ends of others would give them all up.
		g.length = max(took, g.length-g.length/16)
	}
	if g.known <= g.expected {
		return
	}
	// The sender dropped the rest of an earlier frame, whose numbers go to this one.
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

// Hold tells that parity of the newest frame is still to come, which may make up for what is missing of it: the numbers from from on are asked for only when
// nothing has come for a while (as for the end of a frame), or Hold is told otherwise. It takes the place of what it was told before.
func (g *NACKGenerator) Hold(from int64) { g.held = from }

// Release ends a Hold: the frame's last packet is there, or a newer frame.
func (g *NACKGenerator) Release() { g.held = math.MaxInt64 }

// Spare tells that the numbers from first to last are not needed, since their frame is complete without them. Those of them that are missing now are not asked for
// any more, and count as Spared if they do not come.
func (g *NACKGenerator) Spare(first, last int64) {
	if g.live == 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(g.missing, first, func(m missing, sequence int64) int { return cmp.Compare(m.sequence, sequence) })
	for ; i < len(g.missing) && g.missing[i].sequence <= last; i++ {
		g.missing[i].spared = true
	}
}

// askable is when a packet that was not asked for may be.
func (g *NACKGenerator) askable(m *missing) time.Duration {
	at := m.next
	if g.advances-m.advances >= uint64(g.cfg.ReorderPackets) {
		at = min(at, g.last)
	}
	if m.sequence >= g.held && !m.spared {
		at = max(at, g.tailDue())
	}
	return at
}

// quiet is the silence after which the rest of a frame is missed: longer than TailWait where packets are far apart by nature. A frame of two packets
// at 15 frames per second is paced with 13 ms between them.
func (g *NACKGenerator) quiet() time.Duration {
	return min(max(2*g.spacing, g.cfg.TailWait), 4*g.cfg.TailWait)
}

// tailDue is when the rest of the newest frame is missed: when it should be there by the time that frames of the stream take, whatever their size, with a
// quarter for jitter. A stream that changes from frames of many packets to frames of few has their packets far apart all at once.
func (g *NACKGenerator) tailDue() time.Duration {
	if g.length == 0 {
		return g.last + g.quiet()
	}
	return max(g.last+g.cfg.TailWait, g.begun+g.length+g.length/4)
}
