package pacing

import "time"

// flows holds the flows with queued packets.
type flows[P any] struct {
	// beginning holds the flows whose first packet begins a frame, ongoing the others.
	beginning, ongoing flowHeap[P]
	// byTurn is set while the Path is smooth: the flow whose last frame began first is the first of its heap, and
	// ongoing precedes beginning. Otherwise the packet that is due first is the first.
	byTurn bool
}

func (q *flows[P]) heaps() [2]flowHeap[P] { return [...]flowHeap[P]{q.beginning, q.ongoing} }

// heapOf returns the heap that holds f, by f.begins.
func (q *flows[P]) heapOf(f *Flow[P]) *flowHeap[P] {
	if f.begins {
		return &q.beginning
	}
	return &q.ongoing
}

// add adds a flow whose first packet was queued.
func (q *flows[P]) add(f *Flow[P]) {
	f.begins = f.head().begins
	q.rank(f)
	q.heapOf(f).push(f)
}

// update restores the position of a flow after its turn or its first packet has changed. A flow without packets is
// removed.
func (q *flows[P]) update(f *Flow[P]) {
	switch h := q.heapOf(f); {
	case f.held == 0:
		h.remove(f.place)
	case f.head().begins != f.begins:
		h.remove(f.place)
		q.add(f)
	default:
		q.rank(f)
		h.fix(f.place)
	}
}

// rank sets the rank of a flow with queued packets.
func (q *flows[P]) rank(f *Flow[P]) {
	f.rank = f.head().due
	if q.byTurn {
		f.rank = time.Duration(f.turn)
	}
}

// setByTurn changes the order of the flows.
func (q *flows[P]) setByTurn(on bool) {
	if q.byTurn == on {
		return
	}
	q.byTurn = on
	for _, h := range q.heaps() {
		for _, f := range h {
			q.rank(f)
		}
		h.sort()
	}
}

// first returns the flow of the packet that precedes all others, or nil.
func (q *flows[P]) first() *Flow[P] {
	switch {
	case len(q.beginning) == 0 && len(q.ongoing) == 0:
		return nil
	case len(q.ongoing) == 0:
		return q.beginning[0]
	case len(q.beginning) == 0 || q.byTurn || q.ongoing[0].head().due <= q.beginning[0].head().due:
		return q.ongoing[0]
	}
	return q.beginning[0]
}

// flowHeap is a heap of flows with queued packets. The flow with the lowest rank is at the top; of flows of equal rank
// the one whose first packet is due first.
type flowHeap[P any] []*Flow[P]

func (h *flowHeap[P]) push(f *Flow[P]) {
	f.place = len(*h)
	*h = append(*h, f)
	h.up(f.place)
}

func (h *flowHeap[P]) remove(i int) {
	last := len(*h) - 1
	h.swap(i, last)
	(*h)[last] = nil
	*h = (*h)[:last]
	if i < last {
		h.fix(i)
	}
}

// fix restores the heap order after the rank or the first packet of flow i has changed.
func (h flowHeap[P]) fix(i int) {
	h.up(i)
	h.down(i)
}

func (h flowHeap[P]) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h flowHeap[P]) before(i, j int) bool {
	a, b := h[i], h[j]
	return a.rank < b.rank || a.rank == b.rank && a.head().due < b.head().due
}

// sort restores the heap order after the ranks of all flows have changed.
func (h flowHeap[P]) sort() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h flowHeap[P]) up(i int) {
	for i > 0 && h.before(i, (i-1)/2) {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (h flowHeap[P]) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h.before(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}
