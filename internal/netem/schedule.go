package netem

import "github.com/volsfu/volsfu/internal/netem/agenda"

// Direction is one of the two halves of an access link.
type Direction uint64

// The directions. Their values define the meaning of a seed.
const (
	// Up is the direction from a host.
	Up Direction = iota + 1
	// Down is the direction to a host.
	Down
)

// String returns the name for errors.
func (d Direction) String() string {
	if d == Up {
		return "uplink"
	}
	return "downlink"
}

// hop is a link with its competing transfers, and its place in the agenda of next events.
type hop struct {
	agenda.Place
	link      *Link
	direction Direction
	flows     []*CubicFlow // the flow at index i has the Packet.Flow i+1, and its packets have no source

	waited, waitedCubic DelayCounts // queueing delays of arrived packets, from sockets and from flows
}

// schedule updates the place of a hop in the agenda after a step.
func (n *Network) schedule(h *hop) {
	next := h.link.Next()
	for _, f := range h.flows {
		if at := f.Next(); next.IsZero() || !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	n.pending.Set(h, next)
}
