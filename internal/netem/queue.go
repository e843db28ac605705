package netem

import "time"

// Queue holds the packets that wait for the transmitter of a Link. It decides which packet goes next, which is dropped and which is marked; the Link decides when.
// It is called with times that never go back.
type Queue interface {
	// Enqueue takes p, and returns how many packets it dropped for that, p or others.
	Enqueue(p *Packet, now time.Time) (dropped int)
	// Dequeue gives the packet that is transmitted next, nil if there is none, and returns how many packets it dropped to get there.
	Dequeue(now time.Time) (p *Packet, dropped int)
	// Len is the number of packets waiting.
	Len() int
}

// DropTail is a first-in, first-out Queue of limited size that refuses what does not fit.
type DropTail struct {
	limit   int
	bytes   int
	packets fifo
}

// NewDropTail returns a queue for at most limitBytes bytes. An empty queue takes one packet of any size.
func NewDropTail(limitBytes int) *DropTail { return &DropTail{limit: limitBytes} }

// Enqueue takes p, or drops it if the bytes waiting would exceed the limit.
func (q *DropTail) Enqueue(p *Packet, _ time.Time) (dropped int) {
	if q.packets.len() > 0 && q.bytes+p.Size > q.limit {
		return 1
	}
	q.bytes += p.Size
	q.packets.push(p)
	return 0
}

// Dequeue gives the packet that has waited longest.
func (q *DropTail) Dequeue(time.Time) (p *Packet, dropped int) {
	if p = q.packets.pop(); p != nil {
		q.bytes -= p.Size
	}
	return p, 0
}

// Len is the number of packets waiting.
func (q *DropTail) Len() int { return q.packets.len() }

// fifo is a first-in, first-out list of packets in a ring that grows by doubling.
type fifo struct {
	ring        []*Packet
	head, count int
}

func (f *fifo) len() int { return f.count }

func (f *fifo) push(p *Packet) {
	if f.count == len(f.ring) {
		grown := make([]*Packet, max(2*len(f.ring), 16))
		n := copy(grown, f.ring[f.head:])
		copy(grown[n:], f.ring[:f.head])
		f.ring, f.head = grown, 0
	}
	f.ring[(f.head+f.count)%len(f.ring)] = p
	f.count++
}

// pop returns the oldest packet, nil if there is none.
func (f *fifo) pop() *Packet {
	if f.count == 0 {
		return nil
	}
	p := f.ring[f.head]
	f.ring[f.head] = nil
	f.head = (f.head + 1) % len(f.ring)
	f.count--
	return p
}
