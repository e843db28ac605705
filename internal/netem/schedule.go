package netem

import (
	"container/heap"
	"time"
)

// direction says which half of an access link a hop is. Values are part of what a seed means.
type direction uint64

const (
	directionUp direction = iota + 1
	directionDown
)

// unscheduled is the index of a hop where nothing is pending.
const unscheduled = -1

// hop is a link and its place in the schedule.
type hop struct {
	link      *Link
	direction direction
	next      time.Time // Link.Next as of the latest update
	index     int
}

// schedule is a heap of the links where something is pending, by when it happens.
type schedule []*hop

// update puts a link in its place after it was stepped.
func (s *schedule) update(h *hop) {
	h.next = h.link.Next()
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
