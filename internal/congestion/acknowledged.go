package congestion

import "time"

const (
	// ackWindow is 15 frames at 30 per second, 5 at 10: a window of whole frame intervals gives the same rate wherever in a burst it ends, and frames that
	// differ by ±20 % make it differ by 0.2/√3/√15 = 3 %.
	ackWindow = 500
	// ackShort is three frames at 30 per second. It is for a full link, where packets arrive without gaps and the rate of half a second ago is history.
	ackShort = 100
	// burstWindow is less than the 13 ms in which a frame is sent at 30 per second.
	burstWindow = 10
	// burstEpoch: the rate of bursts is the highest of this and of the epoch before.
	burstEpoch = 500
	// ackMin is how long packets must have arrived until there is a rate, and ackMinPackets how many.
	ackMin        = 100
	ackMinPackets = 10
	// minStall is a gap between two arrivals, beyond that between their departures, that no packet of others takes.
	minStall = 20 * time.Millisecond
	// maxBin bytes in a millisecond are 8 Tbit/s: more is no path's but made up, and would overflow.
	maxBin = 1 << 30
)

// acknowledged measures the rate at which packets arrive, in bins of a millisecond of the remote clock.
//
// libwebrtc's throughput estimator keeps up to 500 packets, which are 50 ms at 100 Mbit/s. This one keeps time, so that its memory and its meaning do not
// depend on the rate.
type acknowledged struct {
	bins    [ackWindow]uint32 // bytes, of millisecond n at n mod ackWindow
	newest  int64             // millisecond of the last bin
	first   int64             // millisecond since which packets are counted
	begun   bool
	packets int
	long    int64 // bytes in the last ackWindow ms
	short   int64
	burst   int64
	highest [2]int64 // most bytes in burstWindow in this and in the former epoch
	largest [2]int64 // packets of these
	epoch   int64
	close   batches

	lastSent, lastArrived time.Duration
	skipped               time.Duration // left out of the times of arrival
	skippedAt             time.Duration // when that was done last
}

// add takes a packet that arrived. Those that come more than a window late are left out.
func (a *acknowledged) add(sent, arrived time.Duration, size int) {
	arrived = a.skipStall(sent, arrived)
	at := int64(arrived / time.Millisecond)
	if arrived < 0 {
		at-- // division rounds towards zero
	}
	if !a.begun || at-a.newest >= ackWindow {
		former := *a
		*a = acknowledged{newest: at, first: at, begun: true, epoch: at, highest: former.highest, largest: former.largest, close: former.close}
		a.lastSent, a.lastArrived, a.skipped, a.skippedAt = former.lastSent, former.lastArrived, former.skipped, former.skippedAt
	}
	for a.newest < at {
		a.newest++
		a.long -= int64(a.bins[index(a.newest)])
		a.short -= int64(a.bins[index(a.newest-ackShort)])
		a.burst -= int64(a.bins[index(a.newest-burstWindow)])
		a.bins[index(a.newest)] = 0
	}
	if at <= a.newest-ackWindow || at < a.first || a.bins[index(at)] >= maxBin {
		return
	}
	a.packets++
	a.close.add(arrived, size)
	a.bins[index(at)] += uint32(size)
	a.long += int64(size)
	if at > a.newest-ackShort {
		a.short += int64(size)
	}
	if at > a.newest-burstWindow {
		a.burst += int64(size)
	}
	if a.newest-a.epoch >= burstEpoch {
		a.highest[1], a.highest[0], a.epoch = a.highest[0], 0, a.newest
		a.largest[1], a.largest[0] = a.largest[0], 0
	}
	// One packet more than fits arrives within a window that begins and ends with one: at 2 Mbit/s three instead of two. The first of them is left out, and as it
	// is not known which one that is, the largest.
	a.largest[0] = max(a.largest[0], int64(size))
	a.highest[0] = max(a.highest[0], a.burst-max(a.largest[0], a.largest[1]))
}

// skipStall leaves out the time in which nothing arrived although it was sent, once per window: on a route that has become longer it says nothing about
// the rate, and libwebrtc leaves out the largest gap of its window, too. More of them are a path that has become slow.
func (a *acknowledged) skipStall(sent, arrived time.Duration) time.Duration {
	stall := (arrived - a.lastArrived) - (sent - a.lastSent)
	if a.begun && stall > minStall && (a.skipped == 0 || arrived-a.skippedAt > ackWindow*time.Millisecond) {
		a.skipped += stall
		a.skippedAt = arrived
	}
	a.lastSent, a.lastArrived = sent, arrived
	return arrived - a.skipped
}

func index(millisecond int64) int { return int((millisecond%ackWindow + ackWindow) % ackWindow) }

// rate is the rate over the last half second, or since the beginning, in bit/s. It tells false while too little has arrived.
func (a *acknowledged) rate() (float64, bool) { return a.over(a.long, ackWindow) }

// latest is the rate over the last tenth of a second.
func (a *acknowledged) latest() (float64, bool) { return a.over(a.short, ackShort) }

func (a *acknowledged) over(bytes, window int64) (float64, bool) {
	elapsed := a.newest - a.first + 1
	if elapsed < ackMin || a.packets < ackMinPackets {
		return 0, false
	}
	return float64(bytes) * 8 * 1000 / float64(min(elapsed, window)), true
}

// bursts is the highest rate at which packets arrived for a hundredth of a second, lately, in bit/s.
func (a *acknowledged) bursts() float64 {
	if rate := a.close.rate(); rate > 0 {
		return rate
	}
	return float64(max(a.highest[0], a.highest[1])) * 8 * 1000 / burstWindow
}

// usual is what bursts usually arrive at, in bit/s.
func (a *acknowledged) usual() float64 {
	if a.close.rate() > 0 && a.close.usual > 0 {
		return a.close.usual
	}
	return a.bursts()
}

// reset forgets everything.
func (a *acknowledged) reset() { *a = acknowledged{} }
