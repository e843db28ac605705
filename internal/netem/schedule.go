package netem

import (
	"container/heap"
	"time"
)

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

// unscheduled is the index of a hop where nothing is pending.
const unscheduled = -1

// hop is a link with the transfers that compete there, and its place in the schedule.
type hop struct {
	link      *Link
	direction Direction
	flows     []*CubicFlow // the flow at index i has the Packet.Flow i+1, and its packets have no source
	next      time.Time    // when something happens, as of the latest update
	index     int

	waited, waitedCubic DelayCounts // of the packets that have arrived, from sockets and from flows
}

// schedule is a heap of the links where something is pending, by when it happens.
type schedule []*hop

// update puts a link in its place after it was stepped.
func (s *schedule) update(h *hop) {
	h.next = h.link.Next()
	for _, f := range h.flows {
		if next := f.Next(); h.next.IsZero() || !next.IsZero() && next.Before(h.next) {
			h.next = next
		}
	}
	switch {
	case h.next.IsZero():
		if h.index != unscheduled {
			heap.Remove(s, h.index)
		}
	case h.index == unscheduled:
		heap.Push(s, h)
	default:
		heap.Fix(s, h.index)
	}
}

func (s schedule) Len() int { return len(s) }

func (s schedule) Less(i, j int) bool { return s[i].next.Before(s[j].next) }

func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

// Push is for container/heap.
func (s *schedule) Push(x any) {
	h := x.(*hop)
	h.index = len(*s)
	*s = append(*s, h)
}

// Pop is for container/heap.
func (s *schedule) Pop() any {
	last := len(*s) - 1
	h := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	h.index = unscheduled
	return h
}
