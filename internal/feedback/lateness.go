package feedback

import (
	"time"
)

const (
	// earlyWindow is the time within which a packet has come as early as the path allows: clocks that drift by 100 parts in a million are 1 ms apart then.
	earlyWindow = 5 * time.Second
	// QueueMemory is how long a queue that has emptied is remembered at least, for the sake of frames that it held up: the long deadline of one.
	QueueMemory = 250 * time.Millisecond
)

// Lateness is how much later than the earliest the packets of one stream come: what they waited on the way, and what pacing held them. Clocks need not agree.
type Lateness struct {
	clockRate uint32

	started  bool
	highest  int64
	epoch    time.Time
	transit  int64 // arrival minus timestamp of the newest packet, in timestamp units, modulo 2^32
	base     int64 // transit times are changes from it
	earliest WindowMax[int64]
	latest   WindowMax[int64] // of what comes after the earliest
}

// NewLateness is that of a stream with the given RTP clock rate in Hz.
func NewLateness(clockRate uint32) *Lateness { return &Lateness{clockRate: max(clockRate, 1)} }

// Received takes a packet with its extended sequence number. What comes out of order says nothing.
func (l *Lateness) Received(sequence int64, timestamp uint32, now time.Time) {
	if l.started && sequence <= l.highest {
		return
	}
	transit := ticks(now.Sub(l.epoch), l.clockRate) - int64(timestamp)
	if change := int64(int32(transit - l.transit)); !l.started || max(change, -change) > ticks(maxTransitChange, l.clockRate) {
		*l = Lateness{clockRate: l.clockRate, started: true, epoch: now, base: -int64(timestamp)}
		transit = l.base
	}
	l.highest, l.transit = sequence, transit
	change, at := int64(int32(transit-l.base)), now.Sub(l.epoch)
	l.earliest.Add(at, -change, earlyWindow)
	l.latest.Add(at, change+l.earliest.Value(), QueueMemory)
}

// Longest is the largest lateness of the last QueueMemory, or of up to twice that.
func (l *Lateness) Longest() time.Duration {
	return time.Duration(l.latest.Value()) * time.Second / time.Duration(l.clockRate)
}
