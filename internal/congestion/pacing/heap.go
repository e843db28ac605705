package pacing

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
