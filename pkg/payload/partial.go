package payload

import (
	"sync"
	"time"
)

// slabFragments is the number of fragments that memory is allocated for at a time. A sender that names large frames and sends one packet per
// chunk can make a receiver hold 8 times what it sent, up to Config.MaxBytes.
const slabFragments = 8

// segmentFragments are the fragments that hold the first 65,000 bytes of a frame, by the arrival of which its latency is told apart (package frametimes).
const segmentFragments = (65000 + FragmentSize - 1) / FragmentSize

// slab holds neighbouring fragments, so that they are copied into a complete frame at one stroke.
type slab [slabFragments * FragmentSize]byte

// slabPool is shared by all streams: a receiver has hundreds, most of which hold nothing at any instant.
var slabPool = sync.Pool{New: func() any { return new(slab) }}

// partial is a frame under way.
type partial struct {
	facts       Descriptor // of the first packet that arrived
	number      int64      // the extended frame number
	first, last time.Time
	// begun is when the last fragment of the first segment arrived, and segment how many of its fragments are missing.
	begun   time.Time
	segment int

	slabs  []*slab  // by fragment number div slabFragments; nil where nothing arrived
	held   int      // chunks that are not nil
	seen   []uint64 // one bit per fragment
	source int      // source fragments that arrived
	any    int      // fragments that arrived

	arrived []uint16 // with parity: fragments that arrived of each block
	ready   int      // with parity: blocks that can be completed
}

// begin makes the partial ready for the frame of the packet.
func (p *partial) begin(d *Descriptor, number int64, now time.Time) {
	packets := d.Packets()
	*p = partial{
		facts: *d, number: number, first: now, segment: min(segmentFragments, int(d.Source)),
		slabs: zeroed(p.slabs, (packets+slabFragments-1)/slabFragments),
		seen:  zeroed(p.seen, (packets+63)/64),
		// Without parity nobody asks for the blocks.
		arrived: zeroed(p.arrived, min(int(d.Parity), 1)*blockCount(int(d.Source))),
	}
}

// zeroed returns n zero elements in the memory of s, if they fit.
func zeroed[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

func (p *partial) has(index int) bool { return p.seen[index/64]&(1<<(index%64)) != 0 }

// slabMissing tells whether the fragment needs a new chunk.
func (p *partial) slabMissing(index int) bool { return p.slabs[index/slabFragments] == nil }

// slot is the memory of a fragment whose chunk exists.
func (p *partial) slot(index int) []byte {
	begin := index % slabFragments * FragmentSize
	return p.slabs[index/slabFragments][begin : begin+FragmentSize : begin+FragmentSize]
}

// put stores a fragment that was not seen before.
func (p *partial) put(index int, data []byte, now time.Time) {
	if p.slabMissing(index) {
		p.slabs[index/slabFragments] = slabPool.Get().(*slab)
		p.held++
	}
	copy(p.slot(index), data)
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

// complete tells whether every fragment arrived or can be recovered.
func (p *partial) complete() bool {
	return p.source == int(p.facts.Source) || p.facts.Parity > 0 && p.ready == len(p.arrived)
}

// assemble writes the frame's data to the frame's buffer, with the help of parity where needed.
func (p *partial) assemble(f *Frame, c *coder) {
	source := int(p.facts.Source)
	f.reserve(source * FragmentSize)
	for i, slab := range p.slabs {
		if begin := i * len(slab); slab != nil && begin < len(f.buffer) {
			copy(f.buffer[begin:], slab[:])
		}
	}
	if p.source == source {
		return
	}
	// The code sees the last fragment padded with zeros.
	if p.has(source - 1) {
		clear(f.buffer[p.facts.Length:])
	}
	for block := range p.arrived {
		f.Recovered += c.recoverBlock(source, int(p.facts.Parity), block, func(index int) ([]byte, bool) {
			switch arrived := p.has(index); {
			case index < source:
				begin := index * FragmentSize
				return f.buffer[begin : begin+FragmentSize : begin+FragmentSize], arrived
			case arrived:
				return p.slot(index), true
			default:
				return nil, false
			}
		})
	}
}

// release gives the chunks back and tells how many they were.
func (p *partial) release() int {
	held := p.held
	for i, c := range p.slabs {
		if c != nil {
			slabPool.Put(c)
			p.slabs[i] = nil
		}
	}
	p.held = 0
	return held
}

// missing is the number of source fragments that did not arrive.
func (p *partial) missing() int { return int(p.facts.Source) - p.source }
