package feedback

import (
	"cmp"
	"slices"
	"time"
)

// keepMissing is the number of entries above which memory is not kept for the next loss: 64 kB.
const keepMissing = 1024

// missing is a packet that did not arrive, or did not arrive when the ones after it did.
type missing struct {
	sequence int64
	since    time.Duration // when its frame began, as far as that is known, else when it was noticed; the deadline counts from here
	asked    time.Duration // when it was first asked for
	next     time.Duration // when it is to be asked for, or given up
	advances uint64        // packets in order before it was noticed
	tries    int
	arrived  bool
	spared   bool // nobody needs it any more
}

// fill takes a packet that is not newer than all before it from the missing ones.
func (g *NACKGenerator) fill(sequence int64, at time.Duration) Arrival {
	i, found := slices.BinarySearchFunc(g.missing, sequence, func(m missing, sequence int64) int { return cmp.Compare(m.sequence, sequence) })
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
		g.took(*m, at)
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

// gone gives a packet up, and tells whether anybody needed it.
func (g *NACKGenerator) gone(m missing) bool {
	g.live--
	if m.spared {
		g.stats.Spared++
		return false
	}
	g.stats.Lost++
	return true
}

// took records how long a recovery took, or how long it was waited for in vain.
func (g *NACKGenerator) took(m missing, at time.Duration) {
	if m.tries > 0 {
		g.recoveries[g.recovered%len(g.recoveries)] = at - m.asked
		g.recovered++
	}
}

// notice takes note of the missing numbers after known, up to and with upTo, to be asked for at next unless later packets come before.
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

// makeRoom sweeps out what arrived where that saves growing, and gives up the oldest where more would be missing than may be.
func (g *NACKGenerator) makeRoom(count int) {
	if len(g.missing)+count > cap(g.missing) && g.live <= len(g.missing)/2 {
		g.sweep(0)
	}
	if excess := len(g.missing) + count - g.cfg.MaxMissing; excess > 0 {
		// A quarter at a time, so that the cost of moving the rest is spread over many packets.
		g.sweep(min(len(g.missing), max(excess, g.cfg.MaxMissing/4)))
	}
}

// sweep removes what arrived, and gives up the oldest entries.
func (g *NACKGenerator) sweep(oldest int) {
	kept, fresh := 0, 0
	for i, m := range g.missing {
		if m.arrived {
			continue
		}
		if i < oldest {
			if g.gone(m) && len(g.dropped) < g.cfg.MaxMissing {
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
