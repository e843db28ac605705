package congestion

import "time"

const (
	// ackWindow, in ms, is 15 frames at 30 frames per second, 5 at 10. A window of whole frame intervals yields the
	// same rate at every point of a burst. Frame sizes that vary by ±20 % change the rate by 0.2/√3/√15 = 3 %.
	ackWindow = 500
	// ackShort, in ms, is three frames at 30 frames per second. The short window is for a full link: packets arrive
	// without gaps, and the rate of 500 ms ago is out of date.
	ackShort = 100
	// burstWindow, in ms, is shorter than the 13 ms in which a frame is sent at 30 frames per second.
	burstWindow = 10
	// burstEpoch, in ms: the burst rate is the maximum over this and the previous epoch.
	burstEpoch = 500
	// A rate is known after ackMin milliseconds of arrivals and ackMinPackets packets.
	ackMin        = 100
	ackMinPackets = 10
	// minStall is the smallest excess of an arrival gap over its departure gap that cannot be caused by cross traffic.
	minStall = 20 * time.Millisecond
	// maxBin bounds the bytes of one millisecond. 1 GiB per millisecond is 8 Tbit/s; a larger value is forged and would
	// overflow.
	maxBin = 1 << 30
)

// acknowledged measures the arrival rate, in bins of one millisecond of the remote clock.
//
// libwebrtc's throughput estimator keeps up to 500 packets, which are 50 ms at 100 Mbit/s. This type keeps a span of
// time, so that memory and meaning do not depend on the rate.
type acknowledged struct {
	bins    [ackWindow]uint32 // bytes; millisecond n is at index n mod ackWindow
	newest  int64             // millisecond of the newest bin
	first   int64             // millisecond of the first counted packet
	begun   bool
	packets int
	long    int64 // bytes in the last ackWindow ms
	short   int64
	burst   int64
	highest [2]int64 // most bytes in burstWindow, in this and the previous epoch
	largest [2]int64 // largest packet of these epochs
	epoch   int64
	close   batches

	lastSent, lastArrived time.Duration
	skipped               time.Duration // time subtracted from arrival times
	skippedAt             time.Duration // arrival time of the last subtraction
}

// add adds a packet that arrived. Packets that arrive more than a window late are ignored.
func (a *acknowledged) add(sent, arrived time.Duration, size int) {
	arrived = a.skipStall(sent, arrived)
	at := int64(arrived / time.Millisecond)
	if arrived < 0 {
		at-- // integer division rounds towards zero
	}
	if !a.begun || at-a.newest >= ackWindow {
		former := *a
		*a = acknowledged{newest: at, first: at, begun: true, epoch: at, highest: former.highest,
			largest: former.largest, close: former.close}
		a.lastSent, a.lastArrived, a.skipped, a.skippedAt = former.lastSent, former.lastArrived, former.skipped,
			former.skippedAt
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
	// A window that begins and ends with a packet holds one packet more than the rate: at 2 Mbit/s three instead of
	// two. The first packet does not count. Its size is not known here, so subtract the largest.
	a.largest[0] = max(a.largest[0], int64(size))
	a.highest[0] = max(a.highest[0], a.burst-max(a.largest[0], a.largest[1]))
}

// skipStall subtracts, at most once per window, a period in which nothing arrived although packets were sent. On a
// route that has become longer this gap says nothing about the rate; libwebrtc skips the largest gap of its window,
// too. Several such gaps mean that the path has become slow.
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

// rate returns the rate over the last half second, or since the first packet, in bit/s. It returns false until enough
// packets have arrived.
func (a *acknowledged) rate() (float64, bool) { return a.over(a.long, ackWindow) }

// latest returns the rate over the last 100 ms.
func (a *acknowledged) latest() (float64, bool) { return a.over(a.short, ackShort) }

func (a *acknowledged) over(bytes, window int64) (float64, bool) {
	elapsed := a.newest - a.first + 1
	if elapsed < ackMin || a.packets < ackMinPackets {
		return 0, false
	}
	return float64(bytes) * 8 * 1000 / float64(min(elapsed, window)), true
}

// bursts returns the highest rate over 10 ms of the last epochs, in bit/s.
func (a *acknowledged) bursts() float64 {
	if rate := a.close.rate(); rate > 0 {
		return rate
	}
	return float64(max(a.highest[0], a.highest[1])) * 8 * 1000 / burstWindow
}

// usual returns the mean burst rate, in bit/s.
func (a *acknowledged) usual() float64 {
	if a.close.rate() > 0 && a.close.usual > 0 {
		return a.close.usual
	}
	return a.bursts()
}

func (a *acknowledged) reset() { *a = acknowledged{} }
