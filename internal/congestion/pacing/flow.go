package pacing

import "time"

// minEntries is what a Flow holds without growing again.
const minEntries = 64

// Flow keeps the packets of one outgoing stream that wait, in order. P is what the caller knows of a packet. The zero Flow is empty.
type Flow[P any] struct {
	// entries is a ring, a power of two long.
	entries     []entry[P]
	first, held int
	// place is where the flow stands among those of its Pacer that wait, with those whose next packet begins a frame or with the others.
	place  int
	begins bool
	// turn counts the frames that its Pacer had begun when it began the flow's last one.
	turn uint64
}

type entry[P any] struct {
	packet P
	due    time.Duration
	begins bool
}

// Len is the number of packets that wait.
func (f *Flow[P]) Len() int { return f.held }

// At is one of the packets that wait, 0 the first.
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

// filter keeps the packets that keep accepts.
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
