package payload

import (
	"slices"
	"sync"
	"time"
)

// slabFragments is the number of fragments per allocation. A sender that announces large frames and
// sends one packet per slab makes a receiver hold 8 times the bytes sent, up to Config.MaxBytes.
const slabFragments = 8

// segmentFragments is the number of fragments that contain the first 65,000 bytes of a frame.
// Package frametimes splits the latency of a frame at the arrival of these fragments.
const segmentFragments = (65000 + FragmentSize - 1) / FragmentSize

// slab holds consecutive fragments, so that one copy moves them to a complete frame.
type slab [slabFragments * FragmentSize]byte

// slabPool is shared by all streams: a receiver has hundreds of streams, and most of them hold
// nothing at any instant.
var slabPool = sync.Pool{New: func() any { return new(slab) }}

// partial is an incomplete frame.
type partial struct {
	facts       Descriptor // of the first packet received
	number      int64      // extended frame number
	first, last time.Time
	// begun is the arrival time of the last fragment of the first segment. segment is the number of
	// its fragments that are missing.
	begun   time.Time
	segment int

	slabs  []*slab  // by fragment number div slabFragments; nil if no fragment of the slab was copied
	shares []share  // the fragments of shared packets, in order of arrival until sorted
	held   int      // bytes of slabs and shared packets
	seen   []uint64 // one bit per fragment
	source int      // source fragments received
	any    int      // fragments received

	arrived []uint16 // with parity: fragments received per block
	ready   int      // with parity: blocks that are complete or can be recovered
}

// begin initializes the partial frame from its first packet.
func (p *partial) begin(d *Descriptor, number int64, now time.Time) {
	packets := d.Packets()
	*p = partial{
		facts: *d, number: number, first: now, segment: min(segmentFragments, int(d.Source)),
		slabs:  zeroed(p.slabs, (packets+slabFragments-1)/slabFragments),
		shares: p.shares[:0],
		seen:   zeroed(p.seen, (packets+63)/64),
		// Without parity the blocks are not used.
		arrived: zeroed(p.arrived, min(int(d.Parity), 1)*blockCount(int(d.Source))),
	}
}

// zeroed returns n zero elements and reuses the memory of s if its capacity suffices.
func zeroed[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

func (p *partial) has(index int) bool { return p.seen[index/64]&(1<<(index%64)) != 0 }

// cost returns the number of bytes that a fragment adds to held.
func (p *partial) cost(index int, s Shared) int {
	switch {
	case s != nil:
		return int(s.Size() + shareSize)
	case p.slabs[index/slabFragments] == nil:
		return len(slab{})
	default:
		return 0
	}
}

// slot returns the memory of a fragment whose slab exists.
func (p *partial) slot(index int) []byte {
	begin := index % slabFragments * FragmentSize
	return p.slabs[index/slabFragments][begin : begin+FragmentSize : begin+FragmentSize]
}

// put stores a fragment that was not received before: a reference if the packet is shared, otherwise a copy.
func (p *partial) put(index int, data []byte, s Shared, now time.Time) {
	p.held += p.cost(index, s)
	if s != nil {
		s.Retain()
		p.shares = append(p.shares, share{index, data, s})
	} else {
		if p.slabs[index/slabFragments] == nil {
			p.slabs[index/slabFragments] = slabPool.Get().(*slab)
		}
		copy(p.slot(index), data)
	}
	p.seen[index/64] |= 1 << (index % 64)
	p.last = now
	p.any++
	source := int(p.facts.Source)
	if index < source {
		p.source++
	}
	if index < min(segmentFragments, source) {
		if p.segment--; p.segment == 0 {
			p.begun = now
		}
	}
	if p.facts.Parity > 0 {
		block := index % len(p.arrived)
		p.arrived[block]++
		if int(p.arrived[block]) == shardsOf(source, block, len(p.arrived)) {
			p.ready++
		}
	}
}

// complete reports whether every source fragment has arrived or can be recovered.
func (p *partial) complete() bool {
	return p.source == int(p.facts.Source) || p.facts.Parity > 0 && p.ready == len(p.arrived)
}

// transfer passes the shared packets to f and reports whether they contain the whole frame.
func (p *partial) transfer(f *Frame) bool {
	source := int(p.facts.Source)
	if len(p.shares) > 0 {
		slices.SortFunc(p.shares, func(a, b share) int { return a.index - b.index })
	}
	if len(p.shares) < source || p.shares[source-1].index != source-1 {
		return false
	}
	p.shares, f.shares, f.source = f.shares, p.shares, source
	return true
}

// shared returns the fragment of a shared packet, nil if there is none. p.shares is sorted.
func (p *partial) shared(index int) []byte {
	at, ok := slices.BinarySearchFunc(p.shares, index, func(s share, index int) int { return s.index - index })
	if !ok {
		return nil
	}
	return p.shares[at].data
}

// assemble writes the frame's data to the buffer of f and recovers missing fragments from parity.
func (p *partial) assemble(f *Frame, c *coder) {
	source := int(p.facts.Source)
	f.reserve(source * FragmentSize)
	for i, slab := range p.slabs {
		if begin := i * len(slab); slab != nil && begin < len(f.buffer) {
			copy(f.buffer[begin:], slab[:])
		}
	}
	for _, s := range p.shares {
		if s.index < source {
			copy(f.buffer[s.index*FragmentSize:], s.data)
		}
	}
	if p.source == source {
		return
	}
	// The parity code treats the last fragment as padded with zeros.
	if p.has(source - 1) {
		clear(f.buffer[p.facts.Length:])
	}
	for block := range p.arrived {
		f.Recovered += c.recoverBlock(source, int(p.facts.Parity), block, func(index int) ([]byte, bool) {
			switch arrived := p.has(index); {
			case index < source:
				begin := index * FragmentSize
				return f.buffer[begin : begin+FragmentSize : begin+FragmentSize], arrived
			case !arrived:
				return nil, false
			default:
				if data := p.shared(index); data != nil {
					return data, true
				}
				return p.slot(index), true
			}
		})
	}
}

// release releases the slabs and the shared packets, and returns their number of bytes.
func (p *partial) release() int {
	held := p.held
	p.shares = released(p.shares)
	for i, c := range p.slabs {
		if c != nil {
			slabPool.Put(c)
			p.slabs[i] = nil
		}
	}
	p.held = 0
	return held
}

// missing returns the number of source fragments that did not arrive.
func (p *partial) missing() int { return int(p.facts.Source) - p.source }
