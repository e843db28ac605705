// Package packetlog implements the packet cache of a track, which is also the queue of every receiver of the track. One
// goroutine appends and removes packets. Any number of goroutines read without locks.
package packetlog

import (
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/panics"
)

const (
	// minEntries is the initial number of entries of a log: more than one second of audio at 20 ms per packet.
	minEntries = 64
	// maxEntries is the maximum number of entries of a log. RTP sequence numbers repeat after 65,536 packets, so older
	// packets cannot be requested.
	maxEntries = 1 << 16
	// indexFactor is the size of the index relative to the ring. Lost packets use numbers but no entries: at a factor
	// of 2, a full log finds every packet up to a loss of one half.
	indexFactor = 2
)

// Log holds the packets of one track in order of arrival. One goroutine at a time appends and removes: the holder of
// the ingress's mutex. Any number of goroutines read the log without locks. Each writer follows the log with its own
// position.
type Log struct {
	// head is the position of the next packet.
	head atomic.Int64
	ring atomic.Pointer[ring]
	// tail is the position of the oldest packet in the log, gone the highest sequence number that was removed.
	tail, gone atomic.Int64
	bytes      atomic.Int64
	limits     Limits
	budget     *Budget
	// reserved is the part of the budget that the log has reserved, in bytes.
	reserved int64
}

// Limits bound one log: the age of its packets, and their memory in bytes.
type Limits struct {
	Age   time.Duration
	Bytes int64
}

// ring holds the packets of a log by position and by sequence number. The lengths of both slices are powers of two. The
// index owns no references.
type ring struct {
	entries []atomic.Pointer[Packet]
	index   []atomic.Pointer[Packet]
}

func newRing(entries int) *ring {
	return &ring{entries: make([]atomic.Pointer[Packet], entries), index: make([]atomic.Pointer[Packet],
		entries*indexFactor)}
}

func (r *ring) entry(position int64) *atomic.Pointer[Packet] {
	return &r.entries[position&int64(len(r.entries)-1)]
}

func (r *ring) indexed(sequence int64) *atomic.Pointer[Packet] {
	return &r.index[sequence&int64(len(r.index)-1)]
}

// put makes the packet visible to readers by number at once, and by position when the head has moved past the packet.
func (r *ring) put(p *Packet) {
	r.entry(p.Position).Store(p)
	r.indexed(p.Facts.Sequence).Store(p)
}

// New returns an empty log.
func New(limits Limits, b *Budget) *Log {
	l := &Log{limits: limits, budget: b}
	l.gone.Store(-1 << 62)
	l.ring.Store(newRing(minEntries))
	return l
}

// Head returns the position of the next packet.
func (l *Log) Head() int64 { return l.head.Load() }

// Tail returns the position of the oldest packet in the log.
func (l *Log) Tail() int64 { return l.tail.Load() }

// Gone returns the highest sequence number that was removed.
func (l *Log) Gone() int64 { return l.gone.Load() }

// Bytes returns the memory of the packets in the log.
func (l *Log) Bytes() int64 { return l.bytes.Load() }

// Append appends a packet without references, which the log then owns, and removes packets that exceed the limits.
func (l *Log) Append(p *Packet) {
	l.expire(p.Order)
	for l.tail.Load() < l.head.Load() && !l.fits(p.Size()) {
		l.evict()
	}
	head := l.head.Load()
	r := l.ring.Load()
	if head-l.tail.Load() == int64(len(r.entries)) {
		if len(r.entries) < maxEntries {
			r = l.grow()
		} else {
			l.evict()
		}
	}
	l.bytes.Add(p.Size())
	p.log, p.Position = l, head
	p.references.Store(1)
	r.put(p)
	l.head.Store(head + 1)
}

// expire removes packets that exceed the age limit at now, in nanoseconds since the engine's start.
func (l *Log) expire(now int64) {
	for tail := l.tail.Load(); tail < l.head.Load(); tail++ {
		if now-l.ring.Load().entry(tail).Load().Order <= int64(l.limits.Age) {
			return
		}
		l.evict()
	}
}

// fits reports whether another packet of that size stays within the limits. fits reserves more of the budget if
// necessary.
func (l *Log) fits(size int64) bool {
	bytes := l.bytes.Load() + size
	if bytes > l.limits.Bytes {
		return false
	}
	for bytes > l.reserved {
		if !l.budget.reserve(l.reserved == 0) {
			return false
		}
		l.reserved += BudgetChunk
	}
	return true
}

// evict removes the oldest packet.
func (l *Log) evict() {
	tail := l.tail.Load()
	r := l.ring.Load()
	p := r.entry(tail).Swap(nil)
	r.indexed(p.Facts.Sequence).CompareAndSwap(p, nil)
	if p.Facts.Sequence > l.gone.Load() {
		l.gone.Store(p.Facts.Sequence)
	}
	l.tail.Store(tail + 1)
	l.bytes.Add(-p.Size())
	// The slack of one chunk keeps a log at a steady rate from alternately releasing and reserving.
	for l.reserved-l.bytes.Load() >= 2*BudgetChunk {
		l.reserved -= BudgetChunk
		l.budget.release()
	}
	p.Release()
}

// grow doubles the ring. Readers that hold the former ring still find its packets. They look for newer packets in the
// new ring, because they read the head before the ring.
func (l *Log) grow() *ring {
	old := l.ring.Load()
	r := newRing(2 * len(old.entries))
	for position := l.tail.Load(); position < l.head.Load(); position++ {
		r.put(old.entry(position).Load())
	}
	l.ring.Store(r)
	return r
}

// Trim removes the packets that exceed the age limit at now, in nanoseconds since the engine's start, and releases the
// memory of an empty log. Trim serves tracks that have become silent. A panic ends the process, because all receivers
// of the track depend on the log.
func (l *Log) Trim(now int64) {
	defer panics.Shared()
	l.expire(now)
	if l.tail.Load() == l.head.Load() {
		l.shrink()
	}
}

// Clear removes every packet.
func (l *Log) Clear() {
	for l.tail.Load() < l.head.Load() {
		l.evict()
	}
	l.shrink()
}

// shrink replaces the ring of an empty log by a ring of minEntries and releases the reserved bytes.
func (l *Log) shrink() {
	if len(l.ring.Load().entries) > minEntries {
		l.ring.Store(newRing(minEntries))
	}
	for l.reserved > 0 {
		l.reserved -= BudgetChunk
		l.budget.release()
	}
}

// At returns the packet at a position below the head with a reference for the caller, or nil if the packet was removed.
func (l *Log) At(position int64) *Packet {
	p := l.ring.Load().entry(position).Load()
	if p == nil || !p.Acquire() {
		return nil
	}
	if p.log != l || p.Position != position {
		p.Release()
		return nil
	}
	return p
}

// Find returns the packet with a sequence number with a reference for the caller, or nil if the packet is not in the
// log.
func (l *Log) Find(sequence int64) *Packet {
	p := l.ring.Load().indexed(sequence).Load()
	if p == nil || !p.Acquire() {
		return nil
	}
	if p.log != l || p.Facts.Sequence != sequence {
		p.Release()
		return nil
	}
	return p
}

// Has reports whether the packet with that sequence number is in the log. Only the goroutine that appends may call Has.
func (l *Log) Has(sequence int64) bool { return l.Peek(sequence) != nil }

// Peek returns the packet with a sequence number without a reference, or nil if the packet is not in the log. Only the
// goroutine that appends may call Peek, and it must not keep the packet.
func (l *Log) Peek(sequence int64) *Packet {
	if p := l.ring.Load().indexed(sequence).Load(); p != nil && p.Facts.Sequence == sequence {
		return p
	}
	return nil
}

// BudgetChunk is the number of bytes that logs reserve at a time, so that they seldom change the shared counter: 64 kB
// are about 40 full packets.
const BudgetChunk = 64 << 10

// Budget bounds the total memory of the logs of one engine, in bytes.
type Budget struct {
	limit int64
	used  atomic.Int64
}

// NewBudget returns a budget of limit bytes.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// Used returns the number of bytes in use.
func (b *Budget) Used() int64 { return b.used.Load() }

// Add adds bytes to the use, regardless of the limit. A negative number releases bytes.
func (b *Budget) Add(bytes int64) { b.used.Add(bytes) }

// reserve reserves a chunk and reports whether one was available. The first chunk of a log is always granted, so that a
// track works when the budget is exhausted: each track may exceed the limit by one chunk.
func (b *Budget) reserve(first bool) bool {
	if b.used.Add(BudgetChunk) > b.limit && !first {
		b.used.Add(-BudgetChunk)
		return false
	}
	return true
}

// release returns a chunk to the budget.
func (b *Budget) release() { b.used.Add(-BudgetChunk) }
