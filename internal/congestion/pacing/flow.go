package pacing

import "time"

// minEntries is the initial capacity of a Flow.
const minEntries = 64

// Flow is the queue of packets of one outgoing stream. P is the caller's description of a packet. The zero Flow is
// empty.
type Flow[P any] struct {
	// entries is a ring; its length is a power of two.
	entries     []entry[P]
	first, held int
	// place is the index of a queued flow in its heap: flows.beginning if begins is set, that is if the first packet
	// begins a frame, else flows.ongoing.
	place  int
	begins bool
	// rank orders the flows of a heap: the due time of the first packet, or turn while the Path is smooth.
	rank time.Duration
	// turn is the value of Pacer.turn at the start of the flow's last frame.
	turn uint64
	// owed is the size of the part of the last frame that has not left, in bytes, 0 or less if the size is unknown.
	// began is the time at which the frame began. listed is set while the flow is in bound.open.
	owed   int
	began  time.Duration
	listed bool
}

// entry is a queued packet. expires and frame are those of its Offer.
type entry[P any] struct {
	packet       P
	due, expires time.Duration
	frame        int32
	begins       bool
}

// expired reports whether the packet begins a frame that the caller drops.
func (e *entry[P]) expired(now time.Duration) bool { return e.expires > 0 && now >= e.expires }

// Len returns the number of queued packets.
func (f *Flow[P]) Len() int { return f.held }

// At returns the queued packet i; 0 is the first.
func (f *Flow[P]) At(i int) P { return f.at(i).packet }

func (f *Flow[P]) head() *entry[P] { return f.at(0) }

func (f *Flow[P]) at(i int) *entry[P] { return &f.entries[(f.first+i)&(len(f.entries)-1)] }

func (f *Flow[P]) push(e entry[P]) {
	if f.held == len(f.entries) {
		f.grow()
	}
	f.held++
	*f.at(f.held - 1) = e
}

func (f *Flow[P]) grow() {
	entries := make([]entry[P], max(2*len(f.entries), minEntries))
	for i := range f.held {
		entries[i] = *f.at(i)
	}
	f.entries, f.first = entries, 0
}

func (f *Flow[P]) pop() P {
	e := f.head()
	packet := e.packet
	*e = entry[P]{}
	f.first = (f.first + 1) & (len(f.entries) - 1)
	f.held--
	return packet
}

// filter keeps the packets for which keep returns true.
func (f *Flow[P]) filter(keep func(P) bool) {
	kept := 0
	for i := range f.held {
		e := f.at(i)
		if keep(e.packet) {
			*f.at(kept) = *e
			kept++
		}
	}
	for i := kept; i < f.held; i++ {
		*f.at(i) = entry[P]{}
	}
	f.held = kept
}
