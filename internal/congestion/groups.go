package congestion

import "time"

// group is a set of packets that were sent close together.
type group struct {
	firstSent, lastSent       time.Duration
	firstArrived, lastArrived time.Duration
}

// groups forms groups of packets and compares consecutive groups, after draft-ietf-rmcat-gcc-02 section 5.2 with the
// burst bounds of libwebrtc. The input is received packets in the order of arrival.
type groups struct {
	cfg       DelayConfig
	current   group
	previous  group
	begun     bool // current holds packets
	compared  bool // previous is valid
	reordered int  // consecutive groups that arrived before their predecessor
}

// groupDelta is the difference between two groups: between their last departures and between their last arrivals.
type groupDelta struct {
	sent, arrived time.Duration
	at            time.Duration // last arrival of the later group
}

// maxReordered is the number of consecutive groups that may arrive before their predecessor. Then the remote clock is
// assumed to have jumped.
const maxReordered = 3

// add adds a packet. It returns a delta and true when the packet begins a new group and two earlier groups are
// complete.
func (g *groups) add(sent, arrived time.Duration) (groupDelta, bool) {
	switch {
	case !g.begun:
		g.begin(sent, arrived)
		return groupDelta{}, false
	case sent < g.current.firstSent:
		return groupDelta{}, false
	case g.burst(sent, arrived) || sent-g.current.firstSent <= g.cfg.GroupInterval:
		g.current.lastSent = max(g.current.lastSent, sent)
		g.current.lastArrived = arrived
		return groupDelta{}, false
	}
	delta := groupDelta{
		sent:    g.current.lastSent - g.previous.lastSent,
		arrived: g.current.lastArrived - g.previous.lastArrived,
		at:      g.current.lastArrived,
	}
	compared := g.compared
	if compared && delta.arrived < 0 {
		if g.reordered++; g.reordered >= maxReordered {
			*g = groups{cfg: g.cfg}
		} else {
			g.begin(sent, arrived)
		}
		return groupDelta{}, false
	}
	g.reordered = 0
	g.previous, g.compared = g.current, true
	g.begin(sent, arrived)
	return delta, compared
}

func (g *groups) begin(sent, arrived time.Duration) {
	g.current = group{firstSent: sent, lastSent: sent, firstArrived: arrived, lastArrived: arrived}
	g.begun = true
}

// burst reports whether a packet arrived together with the group because the path delayed both. The packet is compared
// with the last departure of the group. A group ends after BurstMax: packets on a full link arrive close together as
// long as the link is full, and an unbounded group would hide the overload.
func (g *groups) burst(sent, arrived time.Duration) bool {
	sentLater, arrivedLater := sent-g.current.lastSent, arrived-g.current.lastArrived
	if sentLater == 0 {
		return true
	}
	return arrivedLater < sentLater && arrivedLater <= g.cfg.BurstGap && arrived-g.current.firstArrived < g.cfg.BurstMax
}

func (g *groups) reset() { *g = groups{cfg: g.cfg} }
