package icetcp

import "time"

const (
	// queueBytes bounds what waits for one ICE-TCP connection: at the default age, 134 Mbit/s.
	queueBytes = 4 << 20
	// keptQueueBytes is the memory that an empty queue keeps for what comes next: 17 ms at 120 Mbit/s.
	keptQueueBytes = 256 << 10
)

// queue is what waits for a connection that takes no more for now. TCP repeats all that it has been given, however
// late: so it is given little, and what has waited for longer than anybody is interested in is left out here, whole
// packets at a time. It is pure; whoever owns it keeps the time.
type queue struct {
	// age is how long a packet may wait, 0 for any time; limit is how many bytes may.
	age   time.Duration
	limit int
	// bytes are the packets one behind the other, from begin on; their memory is twice what may wait at most, or what
	// append makes of that.
	bytes []byte
	begin int
	// packets are their lengths and since when they wait, from first on.
	packets []queuedPacket
	first   int
	// dropped counts the packets that were left out.
	dropped uint64
}

// queuedPacket is a packet that waits.
type queuedPacket struct {
	length int
	since  time.Time
}

// waiting is how many bytes wait.
func (q *queue) waiting() int { return len(q.bytes) - q.begin }

// push takes a copy of a packet, in place of the oldest ones where there is no room.
func (q *queue) push(packet []byte, now time.Time) {
	if len(packet) > q.limit {
		q.dropped++
		return
	}
	for q.first < len(q.packets) && (q.late(now) || q.waiting()+len(packet) > q.limit) {
		q.drop()
	}
	// What has gone is at least as much as what is moved, so that each byte is moved once on average, and there is room
	// for twice the limit at most.
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

// take gives the packets that come next, as many as fit the room but at least one, written over what is in it. There
// are none where nothing waits that is not too old.
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

// late reports whether the oldest packet has waited for too long.
func (q *queue) late(now time.Time) bool {
	return q.age > 0 && now.Sub(q.packets[q.first].since) > q.age
}

// drop leaves the oldest packet out.
func (q *queue) drop() {
	q.dropped++
	q.pass()
}

// pass goes on to the next packet.
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
