package congestion

import (
	"math"
	"time"
)

const (
	// standingEpoch is the length of an epoch. The minimum delay of this and the previous epoch, 60 to 120 ms, is the
	// standing queue. Frames are bursts that queue behind themselves; only their first packets show the queue that was
	// there before. At 17 or more frames per second each epoch has such a packet.
	standingEpoch = 60 * time.Millisecond
	// If delays vary by themselves, from packet to packet and not only with queues, the limit of the queue is raised by
	// variations mean changes of the minimum delay from epoch to epoch, averaged over about the last second. One change
	// counts with at most maxVariation, because a growing queue is not a random variation.
	variations     = 2
	variationShare = 16
	maxVariation   = 15 * time.Millisecond
	// baseEpoch: the minimum delay of this and the previous epoch, 15 to 30 s, is the delay of the empty path. Clock
	// drift of 100 ppm is 3 ms in that time.
	baseEpoch = 15 * time.Second
	// If maxReturns reductions in a row leave the delay unchanged within steadyDelay, the delay is attributed to a
	// longer route. Queues do not stay constant: a queue that others keep full becomes the base as earlier delays
	// expire.
	maxReturns  = 2
	steadyDelay = time.Millisecond
	// returnTime is the time beyond a round trip after which a reduction must be visible in the queue: the two epochs,
	// and a report.
	returnTime = 2*standingEpoch + 50*time.Millisecond
	// A reduction counts as sufficient if the queue is at most this share of its former length after that time.
	shrunk = 0.8
)

// minimum is the minimum of a series over this and the previous epoch.
type minimum struct {
	length           time.Duration
	began            time.Duration
	current, earlier time.Duration
	count            int // epochs with samples, at most 2
}

// add adds a value. If the value begins a new epoch, add returns the minimum of the epoch that ended, and true. The
// first epoch counts only if the second follows it directly.
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
// The trend detects a queue by its growth, which must exceed 2.5 to 5 %. The slower the rate grows, the longer it stays
// above the capacity undetected: with a growth of g per second an excess of 4 % is reached after 0.04/g seconds, when
// the queue is 0.04²/2g, 40 ms at 2 % per second. A queue that has stopped growing is not detected by the trend at all.
type standingQueue struct {
	base, recent minimum
	delay        time.Duration
	known        bool
	former       time.Duration // minimum delay of the last complete epoch
	variation    time.Duration // mean change of former from epoch to epoch

	before  time.Duration // delay at the last reduction
	due     time.Duration // time at which the last reduction must be visible
	returns int           // consecutive reductions without effect
}

func newStandingQueue() standingQueue {
	return standingQueue{base: minimum{length: baseEpoch}, recent: minimum{length: standingEpoch}}
}

// add adds the delay of a packet, which includes an unknown and constant clock offset.
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

// over reports whether the queue exceeds the limit and a reduction is due.
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
		// The queue drains: check again after the same time.
		q.before, q.due = q.delay, now+returnTime
		return false
	}
	return true
}

// delayOf returns the queueing part of a packet's delay, 0 while unknown.
func (q *standingQueue) delayOf(delay time.Duration) time.Duration {
	if q.base.count == 0 {
		return 0
	}
	return max(delay-q.base.value(), 0)
}

// reduced records a reduction of the rate. If the delay does not change after maxReturns reductions, it becomes the
// base and reduced returns true: the reductions had no effect.
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

func (q *standingQueue) reset() { *q = newStandingQueue() }
