package congestion

import (
	"math"
	"time"
)

const (
	// delayEpoch is the length of an epoch. The smallest acknowledgement delay of this and the previous epoch, 200 to
	// 400 ms, shows a queue that does not empty. A host that stalls for 100 ms does not change the smallest delay of
	// the epoch.
	delayEpoch = 200 * time.Millisecond
	// delayTolerance is the accepted excess of the smallest delay over the base. On a path without a queue the excess
	// is 1 to 5 ms if each acknowledgement is delayed by up to 20 ms.
	delayTolerance = 30 * time.Millisecond
	// quietShare is the share of the tolerance below which the path counts as having no queue.
	quietShare = 0.5
	// oscillationFactor multiplies the mean oscillation, which is added to the tolerance: two epochs in a row that
	// differ only by chance rarely exceed this. The mean covers about 1.5 s.
	oscillationFactor = 3
	oscillationWeight = 8
)

// ackDelay measures the queue that acknowledgements show: the smallest delay of the last epochs minus the smallest
// delay of the last 15 to 30 s. The tolerance grows with the random variation of the delay.
type ackDelay struct {
	base, recent minimum
	queue        time.Duration
	former       time.Duration // smallest delay of the last complete epoch, 0 while unknown
	change       time.Duration // former minus the value of the epoch before
	oscillation  time.Duration // mean size of changes that the next epoch reversed
}

func newAckDelay() ackDelay {
	return ackDelay{base: minimum{length: baseEpoch}, recent: minimum{length: delayEpoch}}
}

// add adds the smallest round trip of a report.
func (d *ackDelay) add(now, trip time.Duration) {
	d.base.add(now, trip)
	if last, ended := d.recent.add(now, trip); ended && d.whole() {
		if d.former > 0 {
			d.addChange(last - d.former)
		}
		d.former = last
	}
	d.queue = d.recent.value() - d.base.value()
}

// addChange adds the change from one epoch to the next. Only a change that the next one reverses counts as random
// variation: a queue grows or drains in one direction for several epochs.
func (d *ackDelay) addChange(change time.Duration) {
	back := time.Duration(0)
	if change > 0 && d.change < 0 || change < 0 && d.change > 0 {
		back = min(max(change, -change), max(d.change, -d.change))
	}
	d.oscillation += (back - d.oscillation) / oscillationWeight
	d.change = change
}

// whole reports whether one complete epoch and the current epoch have samples.
func (d *ackDelay) whole() bool { return d.recent.count == 2 && d.recent.earlier != math.MaxInt64 }

func (d *ackDelay) tolerance() time.Duration { return delayTolerance + oscillationFactor*d.oscillation }

// over reports whether a queue does not empty.
func (d *ackDelay) over() bool { return d.whole() && d.queue > d.tolerance() }

// quiet reports whether the path has almost no queue.
func (d *ackDelay) quiet() bool { return float64(d.queue) <= quietShare*float64(d.tolerance()) }

// restart resets the epochs and keeps the base of the path.
func (d *ackDelay) restart() {
	d.recent, d.former, d.change, d.queue = minimum{length: delayEpoch}, 0, 0, 0
}

// rebase makes the current delay the base of the path.
func (d *ackDelay) rebase(now time.Duration) {
	d.base = minimum{length: baseEpoch}
	d.base.add(now, d.recent.value())
	d.queue = 0
}
