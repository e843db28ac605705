package netem

import "time"

// Queue holds the packets that wait for the transmitter of a Link. It decides which packet is next, dropped or marked;
// the Link decides when. Its times never decrease.
type Queue interface {
	// Enqueue adds p, and returns the number of packets dropped for it, p or others.
	Enqueue(p *Packet, now time.Time) (dropped int)
	// Dequeue returns the next packet to transmit, nil if there is none, and the number of packets dropped before it.
	Dequeue(now time.Time) (p *Packet, dropped int)
	// Len returns the number of packets waiting.
	Len() int
}

// limited is a Queue whose limit a Link can change.
type limited interface {
	Queue
	setLimit(bytes int)
}

// rated is a Queue that uses the rate of its Link.
type rated interface{ setRate(bps int) }

// DropTail is a first-in, first-out Queue of limited size that drops arriving packets when it is full.
type DropTail struct {
	limit   int
	packets packetList
}

// NewDropTail returns a queue for at most limitBytes bytes. An empty queue accepts one packet of any size.
func NewDropTail(limitBytes int) *DropTail { return &DropTail{limit: limitBytes} }

// Enqueue adds p, or drops it if the queue would exceed the limit.
func (q *DropTail) Enqueue(p *Packet, _ time.Time) (dropped int) {
	if q.packets.len() > 0 && q.packets.bytes+p.Size > q.limit {
		p.discard()
		return 1
	}
	q.packets.push(p)
	return 0
}

// Dequeue returns the packet that has waited longest.
func (q *DropTail) Dequeue(time.Time) (p *Packet, dropped int) { return q.packets.pop(), 0 }

// Len returns the number of packets waiting.
func (q *DropTail) Len() int { return q.packets.len() }

func (q *DropTail) setLimit(bytes int) { q.limit = bytes }

// packetList is a fifo that counts its bytes.
type packetList struct {
	fifo[*Packet]
	bytes int
}

func (l *packetList) push(p *Packet) {
	l.bytes += p.Size
	l.fifo.push(p)
}

// pop returns the oldest packet, nil if there is none.
func (l *packetList) pop() *Packet {
	p := l.fifo.pop()
	if p != nil {
		l.bytes -= p.Size
	}
	return p
}

// fifo is a first-in, first-out list in a ring that grows by doubling.
type fifo[T any] struct {
	ring        []T
	head, count int
}

func (f *fifo[T]) len() int { return f.count }

// first returns the oldest element of a list that is not empty.
func (f *fifo[T]) first() *T { return &f.ring[f.head] }

func (f *fifo[T]) push(v T) {
	if f.count == len(f.ring) {
		grown := make([]T, max(2*len(f.ring), 16))
		n := copy(grown, f.ring[f.head:])
		copy(grown[n:], f.ring[:f.head])
		f.ring, f.head = grown, 0
	}
	f.ring[(f.head+f.count)%len(f.ring)] = v
	f.count++
}

// pop returns the oldest element, the zero value if there is none.
func (f *fifo[T]) pop() T {
	var none T
	if f.count == 0 {
		return none
	}
	v := f.ring[f.head]
	f.ring[f.head] = none
	f.head = (f.head + 1) % len(f.ring)
	f.count--
	return v
}
