package congestion

import "time"

// group is a number of packets that were sent close together.
type group struct {
	firstSent, lastSent       time.Duration
	firstArrived, lastArrived time.Duration
}

// groups puts packets into groups and compares each with the one before, after draft-ietf-rmcat-gcc-02 section 5.2 with libwebrtc's bounds on bursts. It
// is fed with received packets in the order of their arrival.
type groups struct {
	cfg       DelayConfig
	current   group
	previous  group
	begun     bool // current holds packets
	compared  bool // previous is valid
	reordered int  // groups in a row that arrived before their predecessor
}

// groupDelta is what lies between two groups: between their last departures and between their last arrivals.
type groupDelta struct {
	sent, arrived time.Duration
	at            time.Duration // the later group's last arrival
}

// maxReordered is how many groups may arrive before their predecessor until the remote clock is taken to have jumped.
const maxReordered = 3

// add takes a packet. It tells true when that packet begins a group and two others are complete.
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

// burst tells whether a packet arrived with the group because something on the path held both up. It compares with the group's last departure, and a
// group ends after BurstMax: on a full link packets arrive close together for as long as it is full, and a group without end would hide just that.
func (g *groups) burst(sent, arrived time.Duration) bool {
	sentLater, arrivedLater := sent-g.current.lastSent, arrived-g.current.lastArrived
	if sentLater == 0 {
		return true
	}
	return arrivedLater < sentLater && arrivedLater <= g.cfg.BurstGap && arrived-g.current.firstArrived < g.cfg.BurstMax
}

// reset forgets everything.
func (g *groups) reset() { *g = groups{cfg: g.cfg} }
