package netem

import "github.com/volsfu/volsfu/internal/netem/agenda"

// Direction is one of the two halves of an access link.
type Direction uint64

// The directions. Their values are part of what a seed means.
const (
	// Up is what a host sends.
	Up Direction = iota + 1
	// Down is what a host receives.
	Down
)

// String returns the name that errors use.
func (d Direction) String() string {
	if d == Up {
		return "uplink"
	}
	return "downlink"
}

// hop is a link with the transfers that compete there, and its place in the agenda of what happens next.
type hop struct {
	agenda.Place
	link      *Link
	direction Direction
	flows     []*CubicFlow // the flow at index i has the Packet.Flow i+1, and its packets have no source

	waited, waitedCubic DelayCounts // of the packets that have arrived, from sockets and from flows
}

// schedule puts a hop in its place in the agenda after it was stepped.
func (n *Network) schedule(h *hop) {
	next := h.link.Next()
	for _, f := range h.flows {
		if at := f.Next(); next.IsZero() || !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	n.pending.Set(h, next)
}
