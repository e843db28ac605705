package congestion

import (
	"math"
	"time"
)

const (
	// standingEpoch: the least delay of this and of the epoch before, 60 to 120 ms, is what a packet waits whatever it follows. Frames are bursts that
	// queue up by themselves: their first packets show what was there before, and at 17 frames per second and more each epoch has such a packet.
	standingEpoch = 60 * time.Millisecond
	// Where delays vary by themselves, from packet to packet and not only with queues, the limit of the queue is higher: by so many mean changes of the least
	// delay from epoch to epoch, an average over about the last second. One change counts for no more than maxVariation: a queue that builds up is none.
	variations     = 2
	variationShare = 16
	maxVariation   = 15 * time.Millisecond
	// baseEpoch: the least delay of this and of the epoch before, 15 to 30 s, is that of the empty path. Clocks drift apart by 100 ppm, 3 ms in that time.
	baseEpoch = 15 * time.Second
	// maxReturns is how many reductions in a row may leave the delay the same, within steadyDelay, until it is taken for that of the path, whose route has
	// become longer. Queues do not stay the same: what others keep in one becomes the base as earlier delays are forgotten.
	maxReturns  = 2
	steadyDelay = time.Millisecond
	// returnTime is how long after a round trip a reduction must have shown in the queue: the two epochs that are looked at, and a report.
	returnTime = 2*standingEpoch + 50*time.Millisecond
	// shrunk is what a queue has to shrink to in that time so that the reduction counts as sufficient.
	shrunk = 0.8
)

// minimum is the least of a series over this epoch and the one before.
type minimum struct {
	length           time.Duration
	began            time.Duration
	current, earlier time.Duration
	count            int // epochs with samples, up to 2
}

// add takes a value. It tells the least of the epoch that has ended with it, if one has; the first one of all counts once another follows it at once.
func (m *minimum) add(at, value time.Duration) (least time.Duration, ended bool) {
	least = m.current
	switch {
	case m.count == 0:
		m.began, m.current, m.earlier, m.count = at, value, math.MaxInt64, 1
		return least, false
	case at-m.began >= 2*m.length:
		m.began, m.current, m.earlier = at, value, math.MaxInt64
	case at-m.began >= m.length:
		m.earlier, m.began, m.current, m.count = m.current, at, value, 2
	default:
		m.current = min(m.current, value)
		return least, false
	}
	return least, m.count == 2
}

func (m *minimum) value() time.Duration { return min(m.current, m.earlier) }

// standingQueue measures the queue that does not empty between frames.
//
// The trend alone finds a queue by its growth, which has to exceed 2.5 to 5 %. The slower the rate grows, the longer it goes on above the capacity until
// then: with a growth of g per second an excess of 4 % is reached after 0.04/g seconds, when the queue has come to 0.04²/2g, 40 ms at 2 % per second. And
// a queue that has stopped growing it does not find at all.
type standingQueue struct {
	base, recent minimum
	delay        time.Duration
	known        bool
	former       time.Duration // least delay of the last epoch but this
	variation    time.Duration // mean change of that from epoch to epoch

	before  time.Duration // delay at the last reduction
	due     time.Duration // when that reduction must have shown
	returns int           // reductions in a row that did not
}

func newStandingQueue() standingQueue {
	return standingQueue{base: minimum{length: baseEpoch}, recent: minimum{length: standingEpoch}}
}

// add takes a packet's delay, which holds an unknown and constant difference of clocks.
func (q *standingQueue) add(arrived, delay time.Duration) {
	q.base.add(arrived, delay)
	if former, ended := q.recent.add(arrived, delay); ended {
		change := min(max(former-q.former, q.former-former), maxVariation)
		q.variation += (change - q.variation) / variationShare
		q.former = former
	}
	q.delay = q.recent.value() - q.base.value()
	q.known = q.recent.count == 2
}

// over tells whether the queue is longer than the limit and whether it is time to act upon it.
func (q *standingQueue) over(now, limit time.Duration) bool {
	if !q.known || limit == 0 {
		return false
	}
	if q.delay <= limit+variations*q.variation {
		q.returns = 0
		return false
	}
	if now < q.due {
		return false
	}
	if float64(q.delay) <= shrunk*float64(q.before) {
		// It empties: look again after as long.
		q.before, q.due = q.delay, now+returnTime
		return false
	}
	return true
}

// delayOf is what of a packet's delay was a queue's, 0 while that is unknown.
func (q *standingQueue) delayOf(delay time.Duration) time.Duration {
	if q.base.count == 0 {
		return 0
	}
	return max(delay-q.base.value(), 0)
}

// reduced notes that the rate was reduced. It takes a delay that does not change for the path's, and tells when it does: then the reductions were in vain.
func (q *standingQueue) reduced(now, rtt, limit time.Duration) bool {
	if now >= q.due {
		if change := q.delay - q.before; q.delay > limit && change <= steadyDelay && change >= -steadyDelay {
			q.returns++
		} else {
			q.returns = 0
		}
	}
	if q.returns >= maxReturns {
		q.returns, q.before, q.delay = 0, 0, 0
		q.base, q.base.length = q.recent, baseEpoch
		return true
	}
	q.before, q.due = q.delay, now+rtt+returnTime
	return false
}

// reset forgets everything.
func (q *standingQueue) reset() { *q = newStandingQueue() }
