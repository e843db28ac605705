package forward

import (
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/panics"
)

const (
	// minEntries is what a log starts with: more than one second of audio at 20 ms.
	minEntries = 64
	// maxEntries is what a log grows to. RTP sequence numbers repeat after 65,536 packets, so older ones could not be asked for.
	maxEntries = 1 << 16
	// indexFactor is the size of the index in relation to the ring. Packets that were lost take numbers but no entries: at a factor of 2,
	// a log that is full still finds every packet up to a loss of one half.
	indexFactor = 2
)

// packetLog is the packet cache of one track: a log of its packets in order of arrival. One goroutine at a time appends and removes (the one
// that holds the ingress's mutex); any number of goroutines read it without locks. A writer follows the log with a position of its own, so the
// log is also the queue of every receiver of the track.
type packetLog struct {
	// head is the position of the next packet.
	head atomic.Int64
	ring atomic.Pointer[ring]
	// tail is the position of the oldest packet kept, gone the highest sequence number that was removed.
	tail, gone atomic.Int64
	bytes      atomic.Int64
	limits     logLimits
	budget     *budget
	// reserved is the log's share of the budget.
	reserved int64
}

// logLimits bound one log.
type logLimits struct {
	age   time.Duration
	bytes int64
}

// ring holds the packets of a log by position and by sequence number. Both are powers of two long. The index owns no references.
type ring struct {
	entries []atomic.Pointer[packet]
	index   []atomic.Pointer[packet]
}

func newRing(entries int) *ring {
	return &ring{entries: make([]atomic.Pointer[packet], entries), index: make([]atomic.Pointer[packet], entries*indexFactor)}
}

func (r *ring) entry(position int64) *atomic.Pointer[packet] {
	return &r.entries[position&int64(len(r.entries)-1)]
}

func (r *ring) indexed(sequence int64) *atomic.Pointer[packet] {
	return &r.index[sequence&int64(len(r.index)-1)]
}

// put makes the packet visible to readers who look it up by number, and by position once the head has moved past it.
func (r *ring) put(p *packet) {
	r.entry(p.position).Store(p)
	r.indexed(p.facts.Sequence).Store(p)
}

func newPacketLog(limits logLimits, b *budget) *packetLog {
	l := &packetLog{limits: limits, budget: b}
	l.gone.Store(-1 << 62)
	l.ring.Store(newRing(minEntries))
	return l
}

// append takes over a packet without references as the newest one, and removes what is too old or too much.
func (l *packetLog) append(p *packet) {
	l.expire(p.order)
	for l.tail.Load() < l.head.Load() && !l.fits(p.size()) {
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
	l.bytes.Add(p.size())
	p.log, p.position = l, head
	p.references.Store(1)
	r.put(p)
	l.head.Store(head + 1)
}

// expire removes packets that arrived longer ago than the age limit. Their order counts nanoseconds.
func (l *packetLog) expire(now int64) {
	for tail := l.tail.Load(); tail < l.head.Load(); tail++ {
		if now-l.ring.Load().entry(tail).Load().order <= int64(l.limits.age) {
			return
		}
		l.evict()
	}
}

// fits tells whether another packet of that size stays within the limits.
func (l *packetLog) fits(size int64) bool {
	bytes := l.bytes.Load() + size
	if bytes > l.limits.bytes {
		return false
	}
	for bytes > l.reserved {
		if !l.budget.reserve(l.reserved == 0) {
			return false
		}
		l.reserved += budgetChunk
	}
	return true
}

// evict removes the oldest packet.
func (l *packetLog) evict() {
	tail := l.tail.Load()
	r := l.ring.Load()
	p := r.entry(tail).Swap(nil)
	r.indexed(p.facts.Sequence).CompareAndSwap(p, nil)
	if p.facts.Sequence > l.gone.Load() {
		l.gone.Store(p.facts.Sequence)
	}
	l.tail.Store(tail + 1)
	l.bytes.Add(-p.size())
	// The slack of one chunk keeps a log at a steady rate from giving back and reserving in turn.
	for l.reserved-l.bytes.Load() >= 2*budgetChunk {
		l.reserved -= budgetChunk
		l.budget.release()
	}
	p.release()
}

// grow doubles the ring. Readers that hold the former one still find what was in it, and look for newer packets in the new one, because
// they read the head before the ring.
func (l *packetLog) grow() *ring {
	old := l.ring.Load()
	r := newRing(2 * len(old.entries))
	for position := l.tail.Load(); position < l.head.Load(); position++ {
		r.put(old.entry(position).Load())
	}
	l.ring.Store(r)
	return r
}

// trim removes what is too old at that time, and gives back the memory of a log that has become empty. It is for tracks that have fallen silent.
// A panic ends the process, as in publish.
func (l *packetLog) trim(now int64) {
	defer panics.Shared()
	l.expire(now)
	if l.tail.Load() == l.head.Load() {
		l.shrink()
	}
}

// clear removes every packet.
func (l *packetLog) clear() {
	for l.tail.Load() < l.head.Load() {
		l.evict()
	}
	l.shrink()
}

// shrink gives an empty log the ring that it started with.
func (l *packetLog) shrink() {
	if len(l.ring.Load().entries) > minEntries {
		l.ring.Store(newRing(minEntries))
	}
	for l.reserved > 0 {
		l.reserved -= budgetChunk
		l.budget.release()
	}
}

// at gives the packet at a position below the head with a reference for the caller, or nil if it was removed.
func (l *packetLog) at(position int64) *packet {
	p := l.ring.Load().entry(position).Load()
	if p == nil || !p.acquire() {
		return nil
	}
	if p.log != l || p.position != position {
		p.release()
		return nil
	}
	return p
}

// find gives the packet with a sequence number with a reference for the caller, or nil if it is not, or no longer, in the log.
func (l *packetLog) find(sequence int64) *packet {
	p := l.ring.Load().indexed(sequence).Load()
	if p == nil || !p.acquire() {
		return nil
	}
	if p.log != l || p.facts.Sequence != sequence {
		p.release()
		return nil
	}
	return p
}

// has tells whether a packet with that sequence number is in the log. Only who appends may ask: for others it might be gone meanwhile.
func (l *packetLog) has(sequence int64) bool { return l.having(sequence) != nil }

// having gives the packet with a sequence number without a reference, or nil if it is not in the log. Only who appends may ask, and does not keep it.
func (l *packetLog) having(sequence int64) *packet {
	if p := l.ring.Load().indexed(sequence).Load(); p != nil && p.facts.Sequence == sequence {
		return p
	}
	return nil
}

// budgetChunk is what logs reserve at a time, so that they seldom meet at the counter they share: 64 kB are about 40 full packets.
const budgetChunk = 64 << 10

// budget bounds what the logs of one engine hold together.
type budget struct {
	limit int64
	used  atomic.Int64
}

// reserve takes a chunk. The first chunk of a log is always granted, so that a track works however full the house is; the limit may be
// exceeded by that chunk per track.
func (b *budget) reserve(first bool) bool {
	if b.used.Add(budgetChunk) > b.limit && !first {
		b.used.Add(-budgetChunk)
		return false
	}
	return true
}

func (b *budget) release() { b.used.Add(-budgetChunk) }
