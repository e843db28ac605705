package feedback

import (
	"cmp"
	"slices"
	"time"
)

// keepMissing is the number of entries above which memory is not kept for the next loss: 64 kB.
const keepMissing = 1024

// missing is a packet that did not arrive, or arrived after later ones.
type missing struct {
	sequence int64
	// start of the packet's frame if known, else the time of detection; the deadline counts from here
	since    time.Duration
	asked    time.Duration // time of the first request
	next     time.Duration // time of the next request, or of giving up
	advances uint64        // packets in order before the detection
	tries    int
	arrived  bool
	spared   bool // the packet is not needed any more
}

// fill processes a packet that is not newer than all before: it may be a missing one.
func (g *NACKGenerator) fill(sequence int64, at time.Duration) Arrival {
	i, found := slices.BinarySearchFunc(g.missing, sequence,
		func(m missing, sequence int64) int { return cmp.Compare(m.sequence, sequence) })
	if !found || g.missing[i].arrived {
		g.stats.Old++
		return Old
	}
	m := &g.missing[i]
	m.arrived = true
	g.live--
	arrival := Reordered
	if m.tries > 0 {
		arrival = Recovered
		g.stats.Recovered++
		g.recordRecovery(*m, at)
	} else {
		g.stats.Reordered++
	}
	if g.live == 0 {
		g.clear()
	}
	for g.fresh < len(g.missing) && g.missing[g.fresh].arrived {
		g.fresh++
	}
	return arrival
}

// giveUp gives up a packet and reports whether it was needed.
func (g *NACKGenerator) giveUp(m missing) bool {
	g.live--
	if m.spared {
		g.stats.Spared++
		return false
	}
	g.stats.Lost++
	return true
}

// recordRecovery records the duration of a recovery, or of a wait without recovery.
func (g *NACKGenerator) recordRecovery(m missing, at time.Duration) {
	if m.tries > 0 {
		g.recoveries[g.recovered%len(g.recoveries)] = at - m.asked
		g.recovered++
	}
}

// notice adds the numbers after known, up to and including upTo, as missing. They are requested at next, or earlier
// after enough later packets.
func (g *NACKGenerator) notice(upTo int64, at, next time.Duration) {
	count := int(upTo - g.known)
	g.makeRoom(count)
	for sequence := g.known + 1; sequence <= upTo; sequence++ {
		since := at
		if sequence <= g.expected {
			since = g.begun
		}
		g.missing = append(g.missing, missing{sequence: sequence, since: since, next: next, advances: g.advances})
	}
	g.live += count
	g.stats.Missing += uint64(count)
}

// makeRoom removes arrived entries if that avoids growing, and gives up the oldest entries if there are more than
// MaxMissing.
func (g *NACKGenerator) makeRoom(count int) {
	if len(g.missing)+count > cap(g.missing) && g.live <= len(g.missing)/2 {
		g.sweep(0)
	}
	if excess := len(g.missing) + count - g.cfg.MaxMissing; excess > 0 {
		// A quarter at a time, so that the cost of moving the rest is spread over many packets.
		g.sweep(min(len(g.missing), max(excess, g.cfg.MaxMissing/4)))
	}
}

// sweep removes arrived entries, and gives up the oldest.
func (g *NACKGenerator) sweep(oldest int) {
	kept, fresh := 0, 0
	for i, m := range g.missing {
		if m.arrived {
			continue
		}
		if i < oldest {
			if g.giveUp(m) && len(g.dropped) < g.cfg.MaxMissing {
				g.dropped = append(g.dropped, m.sequence)
			}
			continue
		}
		if i < g.fresh {
			fresh++
		}
		g.missing[kept] = m
		kept++
	}
	g.missing, g.fresh = g.missing[:kept], fresh
}

// clear empties the list of missing packets.
func (g *NACKGenerator) clear() {
	if g.missing = g.missing[:0]; cap(g.missing) > keepMissing {
		g.missing = nil
	}
	g.fresh, g.live, g.repeat = 0, 0, never
}
