package netem

import (
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
)

// The parameters of DualPI2 and their defaults: RFC 9332, appendix A.1, figure 2.
const (
	// DualPI2Target is the target delay of the classic queue.
	DualPI2Target = 15 * time.Millisecond
	// DualPI2RampBegin and DualPI2RampEnd are the delays between which the share of marked packets of the low-latency
	// queue rises from 0 to 1.
	DualPI2RampBegin = 800 * time.Microsecond
	DualPI2RampEnd   = 1200 * time.Microsecond

	dualPI2MaxRTT   = 100 * time.Millisecond
	dualPI2Update   = min(DualPI2Target, dualPI2MaxRTT/3)
	dualPI2Coupling = 2.0 // k: marking share of L4S packets relative to the square root of the share of classic packets

	// The gains in Hz: alpha = 0.1 × update / maximal round trip², beta = 0.3 / maximal round trip.
	dualPI2Alpha = 0.1 * (float64(dualPI2Update) / 1e9) /
		((float64(dualPI2MaxRTT) / 1e9) * (float64(dualPI2MaxRTT) / 1e9))
	dualPI2Beta = 0.3 / (float64(dualPI2MaxRTT) / 1e9)

	// The highest share with which classic packets are marked or dropped before ECN is given up: 1 / k².
	dualPI2MaxClassic = 1 / (dualPI2Coupling * dualPI2Coupling)

	dualPI2MTU = fairQuantum // space required for enqueueing

	// While both queues hold packets, the classic one gets 1 byte in 16: the weight that RFC 9332, section 4.1.1
	// suggests for its protection.
	dualPI2Others = 15
)

// DualPI2 is the Queue of RFC 9332: a queue for packets of L4S flows (ECT(1) or CE, RFC 9331), which is served first
// and marks when packets wait for a millisecond, and a classic queue with PI2, whose share of drops or marks is coupled
// with the share of marks in the other, so that both kinds of flows share the rate. Steps and names are those of the
// pseudocode in appendix A with its handling of overload; as there, no random numbers are needed.
type DualPI2 struct {
	limit        int
	l4s, classic packetList

	base                  float64 // p', from which the following are derived
	coupled, squared      float64 // p_CL = k·p' and p_C = p'²
	previous              time.Duration
	nextUpdate            time.Time
	l4sCount, classicTurn float64 // counts of recur for the two queues
	owed                  int     // bytes of L4S packets sent since the last turn of the classic queue

	l4sStats, classicStats ClassStats
}

// ClassStats are the counters of one of the two queues of DualPI2.
type ClassStats struct {
	// Packets counts packets that left the queue for the transmitter, and Marked those that the queue marked. Dropped
	// counts packets that were dropped on arrival or from the queue.
	Packets, Marked, Dropped uint64
	// Waited has the times that the packets spent in the queue.
	Waited DelayCounts
}

// leave counts a packet that leaves for the transmitter. It arrived with the codepoint offered.
func (s *ClassStats) leave(p *Packet, offered ecn.Codepoint, now time.Time) {
	s.Packets++
	if p.ECN != offered {
		s.Marked++
	}
	s.Waited.Add(now.Sub(p.queued))
}

// ClassStats returns the counters of the queue of L4S packets and of the classic queue.
func (q *DualPI2) ClassStats() (l4s, classic ClassStats) { return q.l4sStats, q.classicStats }

func (q *DualPI2) resetStats() { q.l4sStats, q.classicStats = ClassStats{}, ClassStats{} }

// NewDualPI2 returns a queue for at most limitBytes bytes in both queues together. An empty queue accepts one packet of
// any size.
func NewDualPI2(limitBytes int) *DualPI2 { return &DualPI2{limit: limitBytes} }

// Enqueue adds p, or drops it if another full packet would not fit.
func (q *DualPI2) Enqueue(p *Packet, now time.Time) (dropped int) {
	q.update(now)
	list, stats := &q.classic, &q.classicStats
	if p.ECN.L4S() {
		list, stats = &q.l4s, &q.l4sStats
	}
	if q.Len() > 0 && q.l4s.bytes+q.classic.bytes+max(p.Size, dualPI2MTU) > q.limit {
		stats.Dropped++
		p.discard()
		return 1
	}
	p.queued = now
	list.push(p)
	return 0
}

// Dequeue returns the next packet, after dropping others as necessary.
func (q *DualPI2) Dequeue(now time.Time) (p *Packet, dropped int) {
	q.update(now)
	for q.Len() > 0 {
		if q.servesL4S() {
			p = q.l4s.pop()
			offered := p.ECN
			if !q.admitsL4S(p, now) {
				q.l4sStats.Dropped++
				p.discard()
				dropped++
				continue
			}
			q.l4sStats.leave(p, offered, now)
			return p, dropped
		}
		p = q.classic.pop()
		offered := p.ECN
		if recur(&q.classicTurn, q.squared) && (q.squared >= dualPI2MaxClassic || !mark(p)) {
			q.classicStats.Dropped++
			p.discard()
			dropped++
			continue
		}
		q.classicStats.leave(p, offered, now)
		return p, dropped
	}
	return nil, dropped
}

// servesL4S is the scheduler: L4S packets first, except for the classic queue's share.
func (q *DualPI2) servesL4S() bool {
	switch {
	case q.l4s.len() == 0:
		q.owed = 0
		return false
	case q.classic.len() == 0:
		q.owed = 0
		return true
	case q.owed >= dualPI2Others*(*q.classic.first()).Size:
		q.owed -= dualPI2Others * (*q.classic.first()).Size
		return false
	default:
		q.owed += (*q.l4s.first()).Size
		return true
	}
}

// admitsL4S marks a packet if necessary. It returns false if the packet is to be dropped because marking is not
// sufficient.
func (q *DualPI2) admitsL4S(p *Packet, now time.Time) bool {
	if q.coupled >= 1 {
		if recur(&q.l4sCount, q.squared) {
			return false
		}
		if recur(&q.l4sCount, q.coupled) {
			mark(p)
		}
		return true
	}
	native := 0.0
	if q.l4s.len() > 1 { // a single packet, however long it takes, is not a queue
		native = ramp(now.Sub(p.queued))
	}
	if recur(&q.l4sCount, max(native, q.coupled)) {
		mark(p)
	}
	return true
}

// ramp returns the share of marked packets for a delay in the low-latency queue.
func ramp(delay time.Duration) float64 {
	return min(max(float64(delay-DualPI2RampBegin)/float64(DualPI2RampEnd-DualPI2RampBegin), 0), 1)
}

// recur returns true for the given share of its calls, evenly spread.
func recur(count *float64, share float64) bool {
	*count += share
	if *count > 1 {
		*count--
		return true
	}
	return false
}

// update steps the controller up to now. The queues have not changed since the last call, so each step has the state of
// its own time.
func (q *DualPI2) update(now time.Time) {
	if q.nextUpdate.IsZero() {
		q.nextUpdate = now.Add(dualPI2Update)
	}
	for ; !q.nextUpdate.After(now); q.nextUpdate = q.nextUpdate.Add(dualPI2Update) {
		if q.Len() == 0 && q.base == 0 && q.previous == 0 {
			// Nothing changes until the next packet; the steps keep their phase.
			q.nextUpdate = q.nextUpdate.Add(now.Sub(q.nextUpdate).Truncate(dualPI2Update))
			continue
		}
		waiting := max(sojourn(&q.classic, q.nextUpdate), sojourn(&q.l4s, q.nextUpdate))
		q.base += dualPI2Alpha*(waiting-DualPI2Target).Seconds() + dualPI2Beta*(waiting-q.previous).Seconds()
		q.base = min(max(q.base, 0), 1)
		q.coupled, q.squared = min(q.base*dualPI2Coupling, 1), q.base*q.base
		q.previous = waiting
	}
}

// sojourn returns the waiting time of the first packet of a list.
func sojourn(list *packetList, now time.Time) time.Duration {
	if list.len() == 0 {
		return 0
	}
	return now.Sub((*list.first()).queued)
}

// Len returns the number of packets waiting.
func (q *DualPI2) Len() int { return q.l4s.len() + q.classic.len() }

func (q *DualPI2) setLimit(bytes int) { q.limit = bytes }
