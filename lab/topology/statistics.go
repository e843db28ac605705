package topology

import (
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/netem/router"
)

// Statistics are the counters of a network since its start or the last Restart.
type Statistics struct {
	// Duration is the time over which the counters count.
	Duration time.Duration
	// Wires are the directions of links, sorted by link, forth before back.
	Wires []WireStatistics
	// Router holds the counters of all wires together: packets in and out, lateness, CPU time.
	Router router.Statistics
}

// WireStatistics are the counters of one direction of a link.
type WireStatistics struct {
	Link string
	Way  Way
	netem.Stats
	// Waited holds the times that packets spent in the queue before they left it.
	Waited netem.DelayCounts
	// QueuePackets is the number of packets in the queue now.
	QueuePackets int
	// Classes holds the counters by class: see router.WireStatistics.
	Classes *router.Classes
}

// Statistics returns the counters.
func (n *Network) Statistics() Statistics {
	snapshot := n.router.Statistics()
	s := Statistics{Duration: snapshot.Duration, Router: snapshot}
	for _, link := range n.Links() {
		for _, way := range []Way{Forth, Back} {
			w := &snapshot.Wires[n.layout.wires[link][way]]
			s.Wires = append(s.Wires, WireStatistics{Link: link, Way: way, Stats: w.Stats, Waited: w.Waited,
				QueuePackets: w.QueuePackets, Classes: w.Classes})
		}
	}
	return s
}

// Wire returns the counters of one direction of a link, zero if there is no such link.
func (s *Statistics) Wire(link string, way Way) WireStatistics {
	for i := range s.Wires {
		if w := &s.Wires[i]; w.Link == link && w.Way == way {
			return *w
		}
	}
	return WireStatistics{}
}

// Validity judges whether the network was in time since its start or the last Restart: see router.Validity for the
// rule.
func (n *Network) Validity() router.Validity {
	s := n.router.Statistics()
	return s.Validity()
}
