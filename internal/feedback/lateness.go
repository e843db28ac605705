package feedback

import (
	"time"
)

const (
	// earlyWindow is the window of the smallest transit time: clocks with a drift of 100 ppm differ by 1 ms after that
	// time.
	earlyWindow = 5 * time.Second
	// QueueMemory is the minimum time for which a queue that has emptied is remembered, because of the frames that it
	// delayed: their long deadline.
	QueueMemory = 250 * time.Millisecond
)

// Lateness measures the delay of a stream's packets relative to the earliest ones: the queueing delay on the path, and
// the delay by pacing. Clocks need not be synchronised.
type Lateness struct {
	clockRate uint32

	started  bool
	highest  int64
	epoch    time.Time
	transit  int64 // arrival minus timestamp of the newest packet, in timestamp units, modulo 2^32
	base     int64 // transit times are relative to base
	earliest WindowMax[int64]
	latest   WindowMax[int64] // of the delay beyond the earliest
}

// NewLateness returns the Lateness of a stream with the given RTP clock rate in Hz.
func NewLateness(clockRate uint32) *Lateness { return &Lateness{clockRate: max(clockRate, 1)} }

// Received adds a packet with its extended sequence number. Packets out of order are ignored.
func (l *Lateness) Received(sequence int64, timestamp uint32, now time.Time) {
	if l.started && sequence <= l.highest {
		return
	}
	transit := ticks(now.Sub(l.epoch), l.clockRate) - int64(timestamp)
	if change := int64(int32(transit - l.transit)); !l.started || max(change, -change) > ticks(maxTransitChange,
		l.clockRate) {
		*l = Lateness{clockRate: l.clockRate, started: true, epoch: now, base: -int64(timestamp)}
		transit = l.base
	}
	l.highest, l.transit = sequence, transit
	change, at := int64(int32(transit-l.base)), now.Sub(l.epoch)
	l.earliest.Add(at, -change, earlyWindow)
	l.latest.Add(at, change+l.earliest.Value(), QueueMemory)
}

// Longest returns the largest lateness of the last QueueMemory, or of up to twice that.
func (l *Lateness) Longest() time.Duration {
	return time.Duration(l.latest.Value()) * time.Second / time.Duration(l.clockRate)
}
