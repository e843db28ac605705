package icetcp

import "time"

const (
	// queueBytes bounds the bytes queued for one ICE-TCP connection. At the default age this is 134 Mbit/s.
	queueBytes = 4 << 20
	// keptQueueBytes is the memory that an empty queue keeps: 17 ms at 120 Mbit/s.
	keptQueueBytes = 256 << 10
)

// queue holds the packets that wait for a connection. TCP repeats all bytes that it was given, however late. The
// connection is therefore given few bytes, and the queue drops packets that have waited too long, always whole packets.
// The queue is pure: its owner supplies the time.
type queue struct {
	// age is the longest wait of a packet, 0 for no limit. limit is the largest number of queued bytes.
	age   time.Duration
	limit int
	// bytes are the packets one after the other, from begin on. Their memory is at most twice limit, or the capacity
	// that append chooses for that.
	bytes []byte
	begin int
	// packets are the lengths and the arrival times of the packets, from first on.
	packets []queuedPacket
	first   int
	// dropped counts the packets that were dropped.
	dropped uint64
}

// queuedPacket is the length and the arrival time of a queued packet.
type queuedPacket struct {
	length int
	since  time.Time
}

// waiting returns the number of queued bytes.
func (q *queue) waiting() int { return len(q.bytes) - q.begin }

// push queues a copy of a packet. If there is no room, push drops the oldest packets. A packet above limit is dropped.
func (q *queue) push(packet []byte, now time.Time) {
	if len(packet) > q.limit {
		q.dropped++
		return
	}
	for q.first < len(q.packets) && (q.late(now) || q.waiting()+len(packet) > q.limit) {
		q.drop()
	}
	// Bytes are moved only if at least as many bytes before them are free. Each byte is therefore moved once on
	// average, and the memory is at most twice the limit.
	if len(q.bytes)+len(packet) > cap(q.bytes) && q.begin >= q.waiting() {
		q.bytes = q.bytes[:copy(q.bytes, q.bytes[q.begin:])]
		q.begin = 0
	}
	if len(q.packets) == cap(q.packets) && q.first >= len(q.packets)-q.first {
		q.packets = q.packets[:copy(q.packets, q.packets[q.first:])]
		q.first = 0
	}
	q.bytes = append(q.bytes, packet...)
	q.packets = append(q.packets, queuedPacket{len(packet), now})
}

// take returns the next packets, as many as fit into room but at least one, in room's memory. The result is empty if
// all queued packets are too old or none is queued.
func (q *queue) take(room []byte, now time.Time) []byte {
	room = room[:0]
	for q.first < len(q.packets) {
		if q.late(now) {
			q.drop()
			continue
		}
		next := q.packets[q.first]
		if len(room) > 0 && len(room)+next.length > cap(room) {
			return room
		}
		room = append(room, q.bytes[q.begin:q.begin+next.length]...)
		q.pass()
	}
	return room
}

// late reports whether the oldest packet has waited too long.
func (q *queue) late(now time.Time) bool {
	return q.age > 0 && now.Sub(q.packets[q.first].since) > q.age
}

// drop removes the oldest packet and counts it as dropped.
func (q *queue) drop() {
	q.dropped++
	q.pass()
}

// pass removes the oldest packet.
func (q *queue) pass() {
	q.begin += q.packets[q.first].length
	q.first++
	if q.first < len(q.packets) {
		return
	}
	q.bytes, q.begin, q.packets, q.first = q.bytes[:0], 0, q.packets[:0], 0
	if cap(q.bytes) > keptQueueBytes {
		q.bytes, q.packets = nil, nil
	}
}
