package congestion

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// testPacket is a packet in transit over a testLink.
type testPacket struct {
	flow     *testFlow
	sequence int64
	size     int
	queued   time.Duration
}

// testLink is a bottleneck: a rate, a queue, random losses behind it, and a delay.
type testLink struct {
	rate      float64 // bit/s
	delay     time.Duration
	queueMax  time.Duration // of drop-tail, at the rate
	codel     *codel
	loss      float64
	cut       bool // all packets are lost
	jitter    time.Duration
	batch     time.Duration // packets arrive at multiples of this
	last      time.Duration // arrival of the last packet
	random    *rand.Rand
	queue     []testPacket
	head      int
	backlog   int // bytes
	free      time.Duration
	delivered int // bytes
	dropped   int // packets
	delays    []sample
}

type sample struct{ at, delay time.Duration }

// send puts a packet into the queue.
func (l *testLink) send(now time.Duration, p testPacket) {
	l.advance(now)
	if float64(l.backlog+p.size)*8 > l.rate*l.queueMax.Seconds() {
		l.dropped++
		return
	}
	p.queued = now
	if l.head == len(l.queue) {
		l.queue, l.head = l.queue[:0], 0
		l.free = max(l.free, now)
	}
	l.queue = append(l.queue, p)
	l.backlog += p.size
}

// advance serves the queue until now.
func (l *testLink) advance(now time.Duration) {
	for l.head < len(l.queue) {
		p := l.queue[l.head]
		start := max(l.free, p.queued)
		done := start + time.Duration(float64(p.size)*8/l.rate*1e9)
		if done > now {
			return
		}
		l.head++
		l.backlog -= p.size
		if l.codel != nil && l.codel.drops(start, start-p.queued, l.backlog) {
			l.dropped++
			continue
		}
		l.free = done
		l.delays = append(l.delays, sample{start, start - p.queued})
		if l.cut || l.loss > 0 && l.random.Float64() < l.loss {
			continue
		}
		l.delivered += p.size
		p.flow.arrive(p, l.late(done+l.delay))
	}
}

// late delays packets behind the bottleneck: by a random time, in order, or until the next time at which all are
// released.
func (l *testLink) late(at time.Duration) time.Duration {
	if l.jitter > 0 {
		at += time.Duration(l.random.Int64N(int64(l.jitter)))
	}
	if l.batch > 0 {
		at = (at + l.batch - 1) / l.batch * l.batch
	}
	l.last = max(l.last, at)
	return l.last
}

// quantile returns a quantile of the queueing times of the packets served within a time.
func (l *testLink) quantile(from, to time.Duration, q float64) time.Duration {
	var delays []time.Duration
	for _, s := range l.delays {
		if s.at >= from && s.at < to {
			delays = append(delays, s.delay)
		}
	}
	if len(delays) == 0 {
		return 0
	}
	slices.Sort(delays)
	return delays[int(q*float64(len(delays)-1))]
}

// exceeds returns the last time at which a packet was served that had waited longer than a limit.
func (l *testLink) exceeds(limit time.Duration) time.Duration {
	for _, s := range slices.Backward(l.delays) {
		if s.delay > limit {
			return s.at
		}
	}
	return 0
}

// codel drops packets as in RFC 8289, with 5 ms and 100 ms.
type codel struct {
	above, next time.Duration
	dropping    bool
	count       int
}

func (c *codel) drops(now, sojourn time.Duration, backlog int) bool {
	const target, interval = 5 * time.Millisecond, 100 * time.Millisecond
	if sojourn < target || backlog < 1500 {
		c.above, c.dropping = 0, false
		return false
	}
	if c.above == 0 {
		c.above = now + interval
		return false
	}
	if !c.dropping {
		if now < c.above {
			return false
		}
		c.dropping = true
		if c.count > 2 && now-c.next < 8*interval {
			c.count -= 2
		} else {
			c.count = 1
		}
	} else if now < c.next {
		return false
	} else {
		c.count++
	}
	c.next = now + time.Duration(float64(interval)/math.Sqrt(float64(c.count)))
	return true
}
