package congestion

import (
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
)

const (
	// validationPackets is the number of packets of a validation window: enough for a majority, and 16 ms of media at
	// 12.5 Mbit/s. RFC 9000 section 13.4.2 validates with ten packets; a window has twice that number, because packets
	// may be in transit while a router changes.
	validationPackets = 20
	// dropTime is the time beyond a round trip without any report after which packets leave as Not-ECT, to test whether
	// the path drops ECT. Reports leave every 25 to 250 ms at low rates, and every 25 ms at the rates of media. With a
	// report of Not-ECT packets after a round trip the fallback takes 0.3 s and two round trips.
	dropTime = 300 * time.Millisecond
	// dropSends is the number of times that packets must have left within dropTime.
	dropSends = 5
	// allMarkedPackets and allMarkedTime: nothing but CE for this long without a queue is not an AQM. The response
	// halves the rate within five virtual round trips (125 ms) if everything is marked, so that a queue of L4S flows
	// empties in that time.
	allMarkedPackets = 32
	allMarkedTime    = 250 * time.Millisecond
	// allMarkedQueue is above the ramp of DualPI2 (1.2 ms) by less than the resolution of arrival times (1 ms).
	allMarkedQueue = 2 * time.Millisecond
	// classicMarks is the number of marks whose median delay is compared. Of the marks within classicPeriod the least
	// delayed one counts, so that a single overshoot of an L4S queue, which marks hundreds of packets, counts little.
	// CoDel marks 100 ms/√n after mark n: 32 marks in 1.0 s, and the last 16 of them 25 ms apart or closer.
	classicMarks  = 32
	classicPeriod = 25 * time.Millisecond
	// classicDelay separates the AQMs. An L4S queue marks all packets from 1.2 ms on (RFC 9332 appendix A.1), or at any
	// delay by coupling. CoDel marks packets that have waited for 5 ms or longer (RFC 8289), PIE at about 15 ms.
	// Arrival times have steps of 1 ms, so the error of one delay is below 1 ms.
	classicDelay = 4 * time.Millisecond
	// A classic queue marks few of the packets that wait for classicDelay, an L4S queue all of them. The queue is
	// classic if lateMarks packets were marked within classicWindow, and for each of them lateUnmarked others had
	// waited as long and were not. CoDel marks every 100 ms at first: at 20 Mbit/s one of 200 packets. A flow that
	// responds to marks has too few of them for the median. A packet counts only after classicStanding in which no
	// packet had waited for less than classicLow: CoDel marks after 100 ms at its target, PIE keeps a queue at its
	// target, but a host or a wireless link that stalls for some milliseconds delays packets of an L4S queue just as
	// much for a moment. classicLow is more than an L4S queue holds: DualPI2 marks all packets from 1.2 ms on.
	classicWindow   = 2 * time.Second
	classicStanding = 50 * time.Millisecond
	classicLow      = 1500 * time.Microsecond
	lateMarks       = 2
	lateUnmarked    = 10
	// If a host is late all the time, every packet seems to wait, and the delays show nothing. The queue is then not
	// classic if more than 1/singleShare of the marks follow a mark of the own previous packet, or for the second
	// condition one of the last classicPeriod; of the marks before the current classicWindow 1/keptShare count. An L4S
	// queue marks all packets while it is too long, 79 to 98 % of them after another, and two in a virtual round trip,
	// alone and beside one to three Prague flows at 5 to 300 Mbit/s. A marker that meters the rate marks them singly.
	// CoDel marks 100 ms/√n after mark n, at most 40 % of them in the same period until it is recognised, and PIE at
	// random, at most one packet in ten (RFC 8033 section 5.1).
	singleShare = 2
	keptShare   = 4
	// retryTime is the time after which a path that has failed is tested again.
	retryTime = 5 * time.Minute
)

// L4SState is the state of L4S towards one receiver.
type L4SState uint8

// The states of L4S.
const (
	// L4SOff: the algorithm does not use L4S.
	L4SOff L4SState = iota
	// L4STesting: packets leave as ECT(1), and it is not known whether the codepoint arrives.
	L4STesting
	// L4SCapable: ECT(1) arrives. No packet has been marked lately, and GCC governs the rate.
	L4SCapable
	// L4SMarked: packets are marked, and the rate follows the share of marked packets.
	L4SMarked
	// L4SClassic: the path has a classic ECN queue (RFC 3168). Packets leave as ECT(0), and a mark counts like a loss
	// for Cubic.
	L4SClassic
	// L4SFailed: the path does not carry ECT. Packets leave as Not-ECT, and GCC governs the rate.
	L4SFailed
	// L4SStates is the number of states.
	L4SStates
)

// String returns the name of the state in metrics.
func (s L4SState) String() string {
	return [...]string{"off", "testing", "capable", "marked", "classic", "failed"}[min(s, L4SStates-1)]
}

// Fallback is a reason for which L4S ends on a path.
type Fallback uint8

// The reasons of fallbacks.
const (
	// Bleached: packets sent as ECT(1) arrive as Not-ECT.
	Bleached Fallback = iota
	// Rewritten: packets sent as ECT(1) arrive as ECT(0).
	Rewritten
	// AllMarked: every packet arrives as CE although no queue exists.
	AllMarked
	// Dropped: ECT packets are lost while others arrive.
	Dropped
	// Classic: marks come from a classic ECN queue.
	Classic
	// Fallbacks is the number of reasons.
	Fallbacks
)

// String returns the name of the reason in metrics.
func (f Fallback) String() string {
	return [...]string{"bleached", "rewritten", "all_marked", "dropped", "classic"}[min(f, Fallbacks-1)]
}

// ecnValidation decides with which codepoint packets to one receiver leave. It finds out from reports whether the path
// carries ECT and whether marks come from an L4S queue (RFC 9331 section 4.3 requires both; the first test follows RFC
// 9000 section 13.4.2). The owner passes received packets in the order of arrival.
type ecnValidation struct {
	state   L4SState
	sending ecn.Codepoint
	retryAt time.Duration // end of a fallback

	// counts are the codepoints of packets sent as ECT since the begin of the window.
	counts [4]int
	// late counts the packets of the current classicWindow that had waited for classicDelay in a standing queue, early
	// the marks of others. The queue stands since a packet left, if standing is set. Of marks, inRow followed another,
	// and close followed one of the last classicPeriod. latestMark is the arrival of the latest marked packet.
	lateBegan                           time.Duration
	lateMarks, lateUnmarked, earlyMarks int
	marks, inRow, close                 int
	latestMark                          time.Duration
	standing                            bool
	standingSince                       time.Duration
	// run is the number of packets marked in a row, runBegan the time of the first one.
	run      int
	runBegan time.Duration

	// waiting is set when ECT packets have left since the last report: sends times, since the given time.
	waiting bool
	since   time.Duration
	sends   int
	// paused is set while packets leave as Not-ECT because no report arrives, since pausedAt. Then these count the
	// reported packets sent since.
	paused                    bool
	pausedAt                  time.Duration
	ectArrived                bool
	othersArrived, othersLost int

	// delays are those of the least delayed marks of the latest periods, a ring with count entries so far.
	delays      [classicMarks]time.Duration
	count       int
	period      time.Duration // arrival of the first mark of the current period
	periodDelay time.Duration
	inPeriod    bool

	fallbacks [Fallbacks]uint64
}

func newECNValidation() ecnValidation { return ecnValidation{state: L4STesting, sending: ecn.ECT1} }

// sent records that packets leave.
func (v *ecnValidation) sent(now time.Duration) {
	if v.sending == ecn.NotECT {
		return
	}
	if !v.waiting {
		v.waiting, v.since, v.sends = true, now, 0
	}
	v.sends++
}

// step pauses ECT when no report has arrived for too long, and ends fallbacks: tests is set if the path is tested
// again. trip is the round trip, 0 while unknown.
func (v *ecnValidation) step(now, trip time.Duration) (tests bool) {
	if due, ok := v.due(trip); !ok || now < due {
		return false
	}
	if v.state == L4SClassic || v.state == L4SFailed {
		v.begin()
		return true
	}
	v.paused, v.pausedAt, v.ectArrived, v.othersArrived, v.othersLost = true, now, false, 0, 0
	v.waiting, v.sending = false, ecn.NotECT
	return false
}

// due returns the time of the next step, and whether there is one.
func (v *ecnValidation) due(trip time.Duration) (time.Duration, bool) {
	switch {
	case v.state == L4SClassic || v.state == L4SFailed:
		return v.retryAt, true
	case v.waiting && v.sends >= dropSends && !v.paused:
		return v.since + dropTime + trip, true
	}
	return 0, false
}

// begin tests the path from the beginning.
func (v *ecnValidation) begin() {
	fallbacks := v.fallbacks
	*v = newECNValidation()
	v.fallbacks = fallbacks
}

// arrived adds a received packet with its queueing delay, and reports whether the packet was marked by a queue. A mark
// of a packet that did not leave as ECT is ignored.
func (v *ecnValidation) arrived(now time.Duration, a *arrival, delay time.Duration) (marked bool) {
	if a.left == ecn.NotECT {
		if v.paused && a.sent >= v.pausedAt {
			v.othersArrived++
		}
		return false
	}
	v.ectArrived = v.ectArrived || a.sent >= v.since
	marked = a.ecn == ecn.CE
	v.counts[a.ecn]++
	if a.left == ecn.ECT1 {
		v.compare(now, a.arrived, marked, v.stands(a.sent, delay) && delay >= classicDelay)
	}
	if !marked {
		v.run = 0
		return false
	}
	if v.run == 0 {
		v.runBegan = now
	}
	v.run++
	if a.left == ecn.ECT1 {
		v.mark(a.arrived, delay)
	}
	return true
}

// stands adds the delay of a packet that left as ECT(1), and reports whether it met a queue that has stood for
// classicStanding.
func (v *ecnValidation) stands(sent, delay time.Duration) bool {
	if delay < classicLow {
		v.standing = false
		return false
	}
	if !v.standing {
		v.standing, v.standingSince = true, sent
	}
	return sent-v.standingSince >= classicStanding
}

// compare counts a packet that was ECT(1).
func (v *ecnValidation) compare(now, arrived time.Duration, marked, late bool) {
	if now-v.lateBegan >= classicWindow {
		v.lateBegan, v.lateMarks, v.lateUnmarked, v.earlyMarks = now, 0, 0, 0
		v.marks, v.inRow, v.close = v.marks/keptShare, v.inRow/keptShare, v.close/keptShare
	}
	if marked {
		if v.run > 0 {
			v.inRow++
		}
		if v.marks > 0 && arrived-v.latestMark < classicPeriod {
			v.close++
		}
		v.marks++
		v.latestMark = arrived
	}
	switch {
	case late && marked:
		v.lateMarks++
	case late:
		v.lateUnmarked++
	case marked:
		v.earlyMarks++
	}
}

// lost adds a lost packet with the codepoint with which it left.
func (v *ecnValidation) lost(sent time.Duration, left ecn.Codepoint) {
	if v.paused && left == ecn.NotECT && sent >= v.pausedAt {
		v.othersLost++
	}
}

// mark adds the delay of a marked packet.
func (v *ecnValidation) mark(arrived, delay time.Duration) {
	if v.inPeriod && arrived >= v.period && arrived-v.period < classicPeriod {
		v.periodDelay = min(v.periodDelay, delay)
		return
	}
	if v.inPeriod {
		v.delays[v.count%classicMarks] = v.periodDelay
		v.count++
	}
	v.inPeriod, v.period, v.periodDelay = true, arrived, delay
}

// judge decides after a report, with the standing queue. It returns the reason of a fallback, and whether there is one.
func (v *ecnValidation) judge(now, queue time.Duration) (reason Fallback, fallback bool) {
	v.waiting = false
	if v.state == L4SFailed {
		return 0, false
	}
	if v.paused {
		return v.resume(now)
	}
	total := v.counts[0] + v.counts[1] + v.counts[2] + v.counts[3]
	switch {
	case v.counts[ecn.ECT1] > 0 && v.state == L4STesting:
		v.state = L4SCapable
	case v.run >= allMarkedPackets && now-v.runBegan >= allMarkedTime && queue <= allMarkedQueue:
		return v.fall(now, AllMarked)
	}
	if v.state != L4SClassic && v.isClassic() {
		return v.fall(now, Classic)
	}
	if total < validationPackets {
		return 0, false
	}
	bleached, rewritten := v.counts[ecn.NotECT], v.counts[ecn.ECT0]
	if v.state == L4SClassic {
		rewritten = 0
	}
	v.counts = [4]int{}
	switch {
	case 2*bleached > total:
		return v.fall(now, Bleached)
	case 2*rewritten > total:
		return v.fall(now, Rewritten)
	}
	return 0, false
}

// resume ends a pause. Either ECT packets have arrived late. Or packets sent since as Not-ECT arrive: all of them if
// the path drops ECT, but if the path was interrupted, the first ones are lost as well.
func (v *ecnValidation) resume(now time.Duration) (Fallback, bool) {
	switch {
	case v.ectArrived:
	case v.othersArrived < validationPackets/2:
		return 0, false
	case v.othersLost <= v.othersArrived/validationPackets:
		return v.fall(now, Dropped)
	}
	v.paused, v.sending = false, ecn.ECT1
	return 0, false
}

// fall ends L4S on the path.
func (v *ecnValidation) fall(now time.Duration, reason Fallback) (Fallback, bool) {
	v.fallbacks[reason]++
	v.retryAt, v.paused, v.waiting = now+retryTime, false, false
	v.counts, v.run, v.count, v.inPeriod = [4]int{}, 0, 0, false
	if reason == Classic {
		v.state, v.sending = L4SClassic, ecn.ECT0
	} else {
		v.state, v.sending = L4SFailed, ecn.NotECT
	}
	return reason, true
}

// isClassic reports whether marks come from a classic queue.
func (v *ecnValidation) isClassic() bool {
	if singleShare*v.inRow > v.marks {
		return false
	}
	if v.count >= classicMarks && v.median() >= classicDelay && v.lateUnmarked >= max(v.lateMarks, validationPackets) {
		return true
	}
	return singleShare*v.close <= v.marks && v.lateMarks >= lateMarks && v.lateMarks > v.earlyMarks &&
		v.lateUnmarked >= lateUnmarked*v.lateMarks
}

// median returns the median of the latest delays.
func (v *ecnValidation) median() time.Duration {
	sorted := v.delays
	slices.Sort(sorted[:])
	return sorted[classicMarks/2]
}
