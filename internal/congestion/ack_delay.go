package congestion

import (
	"math"
	"time"
)

const (
	// delayEpoch: the quickest acknowledgement of this and of the epoch before, 200 to 400 ms, shows a queue that does not empty. A host that stands still for 100 ms leaves the
	// others of the epoch as quick as before.
	delayEpoch = 200 * time.Millisecond
	// delayTolerance is what the quickest acknowledgement may be late. Those of a path without a queue are 1 to 5 ms late where each is held up for up to 20 ms.
	delayTolerance = 30 * time.Millisecond
	// quietShare of what is tolerated counts as no queue.
	quietShare = 0.5
	// oscillationFactor is how many times the mean oscillation is tolerated besides: of epochs that differ by chance, two in a row are rarely later than that. The mean is of about a second and a half.
	oscillationFactor = 3
	oscillationWeight = 8
)

// ackDelay measures the queue that acknowledgements show, by the quickest of each epoch against the quickest of 15 to 30 s. It tolerates the more the more that varies by itself.
type ackDelay struct {
	base, recent minimum
	queue        time.Duration
	former       time.Duration // the quickest of the last epoch but this, 0 while there is none
	change       time.Duration // by how much that differs from the one before
	oscillation  time.Duration // mean of how far epochs go up and down again
}

func newAckDelay() ackDelay {
	return ackDelay{base: minimum{length: baseEpoch}, recent: minimum{length: delayEpoch}}
}

// add takes the quickest round trip of a report.
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

// addChange takes the change from one epoch to the next. Only what goes back again varies by itself: a queue builds up, or empties, in one direction for several epochs.
func (d *ackDelay) addChange(change time.Duration) {
	back := time.Duration(0)
	if change > 0 && d.change < 0 || change < 0 && d.change > 0 {
		back = min(max(change, -change), max(d.change, -d.change))
	}
	d.oscillation += (back - d.oscillation) / oscillationWeight
	d.change = change
}

// whole tells whether there are acknowledgements of a whole epoch, and of the one under way.
func (d *ackDelay) whole() bool { return d.recent.count == 2 && d.recent.earlier != math.MaxInt64 }

func (d *ackDelay) tolerance() time.Duration { return delayTolerance + oscillationFactor*d.oscillation }

// over tells whether there is a queue that does not empty.
func (d *ackDelay) over() bool { return d.whole() && d.queue > d.tolerance() }

// quiet tells whether there is hardly any.
func (d *ackDelay) quiet() bool { return float64(d.queue) <= quietShare*float64(d.tolerance()) }

// restart forgets the last epochs, but not the path.
func (d *ackDelay) restart() {
	d.recent, d.former, d.change, d.queue = minimum{length: delayEpoch}, 0, 0, 0
}

// rebase takes the delay of now for that of the path.
func (d *ackDelay) rebase(now time.Duration) {
	d.base = minimum{length: baseEpoch}
	d.base.add(now, d.recent.value())
	d.queue = 0
}
