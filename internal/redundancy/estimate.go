package redundancy

import "time"

// The estimate of the second path increases and decreases additively and multiplicatively (AIMD, RFC 5681) with the
// loss and the queue of the copies. The thresholds are those of two published controllers:
//
//   - Loss: above 10 % the rate decreases, up to 2 % it may increase, and in between it stays, as in the loss-based
//     controller of draft-ietf-rmcat-gcc-02 section 6. Radio links lose a few percent without congestion.
//   - Queue: the transit above the shortest transit of the last minutes, as in LEDBAT (RFC 6817 section 3.2). RFC 6817
//     permits 100 ms. Copies have to arrive within the frame's deadline of 150 ms, so the limit is half of that.
//   - Decrease: to 85 % of the arrival rate, as in draft-ietf-rmcat-gcc-02 section 5.5. A path with a standing queue
//     carries its arrival rate, so 85 % empty a queue of 50 ms within 50 ms / 0.15 = 0.3 s.
//
// An estimate that copies do not use is no evidence, and copies are much less than the media. The rate therefore
// increases only if at least half of it arrived, and to at most twice the arrival rate (RFC 7661 has the same idea for
// TCP). An outage of the primary path thus finds an estimate of up to twice the copies, and a factor of 1.25 every
// 100 ms doubles the rate in 0.3 s, until the path shows its limit.
const (
	// startRate is the estimate before the first evaluation, in bit/s: audio and some lowest qualities. It is the
	// lower bound of the increase, too.
	startRate = 1_000_000
	// minRate carries two tracks of audio of 64 kbit/s with their headers. Copies of audio continue on a path that
	// carries nothing, and show when it carries packets again.
	minRate = 200_000
	maxRate = 1_000_000_000

	evaluationInterval = 100 * time.Millisecond
	// minEvaluated is the smallest number of copies that an evaluation judges, unless maxEvaluated has passed. A single
	// loss among 10 is no loss above 10 %.
	minEvaluated = 10
	maxEvaluated = time.Second

	lossDecrease  = 0.10
	lossIncrease  = 0.02
	queueDecrease = 50 * time.Millisecond
	decrease      = 0.85
	// fastIncrease is the factor per evaluation below the rate of the last decrease, and if there was none within
	// limitMemory. Otherwise the rate increases by additivePacket per round trip.
	fastIncrease   = 1.25
	additivePacket = 1200 * 8
	limitMemory    = 10 * time.Second
	// unproven is the largest ratio of the estimate and the arrival rate.
	unproven = 2
	// enough is the largest ratio of the estimate and the media's rate: with repairs, an outage needs no more.
	// Otherwise repairs would raise the estimate, and fill the path's queue.
	enough = 1.25

	// silentPath is the time without an arrival, while copies are sent, after which the path carries nothing.
	silentPath = 300 * time.Millisecond
	// unreported is the time without a report after which the rate is halved, each time.
	unreported = 500 * time.Millisecond
)

// State describes the second path.
type State uint8

// The states.
const (
	// Untested: no copy has been reported as arrived.
	Untested State = iota
	// Carrying: copies arrive.
	Carrying
	// Limited: copies arrive, and the last evaluation has decreased the estimate.
	Limited
	// Silent: copies are sent, and none arrives.
	Silent
	// States is the number of states.
	States
)

var stateNames = [States]string{Untested: "untested", Carrying: "carrying", Limited: "limited", Silent: "silent"}

// String returns the name of the state in metrics.
func (s State) String() string { return stateNames[s] }

// estimate is the rate that the second path carries.
type estimate struct {
	state State
	// rate is in bit/s. limit is the rate after the last decrease, and limited the time of the decrease.
	rate, limit float64
	limited     time.Time
	// loss and queue are those of the last evaluation.
	loss  float64
	queue time.Duration
	// credit is the number of bytes that may be copied now, as of spent.
	credit float64
	spent  time.Time
	// begun is the sample with which the present evaluation began, valid if evaluating is set. lowest is the shortest
	// transit since.
	begun      sample
	evaluating bool
	lowest     time.Duration
	// until is the end of the pause after a decrease, which shows its effect a round trip later.
	until time.Time
	// lastReport is the time of the last report, or of the last decrease for want of reports.
	lastReport time.Time
}

// sample is the state of a path in one report.
type sample struct {
	now time.Time
	// arrived is the arrival of the newest packet in µs by the receiver's clock, modulo 2^32.
	arrived uint32
	// sent counts what was sent up to the newest packet, packets the arrivals.
	sent    sum
	packets uint32
	// transit is the transit of the newest packet, from an arbitrary origin. queue is the transit above the shortest.
	transit, queue time.Duration
}

func newEstimate(now time.Time) estimate {
	e := estimate{rate: startRate, limit: maxRate, spent: now, lastReport: now}
	e.credit = e.burst()
	return e
}

// resume begins to use the estimate again. If the path carried nothing before, the estimate starts again.
func (e *estimate) resume(now time.Time) {
	e.lastReport, e.evaluating = now, false
	if e.state == Silent {
		e.state, e.rate = Untested, startRate
	}
}

// burst is the largest credit: 50 ms at the rate, and five packets at least.
func (e *estimate) burst() float64 { return max(e.rate*0.05/8, 6000) }

// step adds the credit since the last call.
func (e *estimate) step(now time.Time) {
	if elapsed := now.Sub(e.spent); elapsed > 0 {
		e.spent = now
		e.credit = min(e.credit+e.rate/8*elapsed.Seconds(), e.burst())
	}
	if now.Sub(e.lastReport) >= unreported {
		e.lastReport = now
		e.rate = max(e.rate/2, minRate)
	}
}

// silenced records that copies do not arrive.
func (e *estimate) silenced() {
	e.state, e.rate, e.evaluating = Silent, minRate, false
}

// arrived evaluates a report with a new arrival. rtt is the round-trip time of the path, and media the rate of the
// packets of which copies are made, 0 if it is unknown.
func (e *estimate) arrived(s sample, rtt time.Duration, media float64) {
	if e.state == Untested || e.state == Silent {
		e.state = Carrying
	}
	if !e.evaluating {
		e.begin(s)
		return
	}
	e.lowest = min(e.lowest, s.queue)
	elapsed := s.now.Sub(e.begun.now)
	sent, packets := s.sent.packets-e.begun.sent.packets, s.packets-e.begun.packets
	if elapsed < max(evaluationInterval, rtt) || sent < minEvaluated && elapsed < maxEvaluated {
		return
	}
	// Copies that overtake each other may arrive in another evaluation than they are sent in.
	share := min(float64(packets)/float64(max(sent, 1)), 1)
	e.loss, e.queue = 1-share, e.lowest
	arrival := 0.0
	if span := int32(s.arrived - e.begun.arrived); span > 0 {
		arrival = float64(s.sent.bytes-e.begun.sent.bytes) * share * 8e6 / float64(span)
	}
	e.adapt(arrival, media, s.now, elapsed, rtt)
	e.begin(s)
}

// begin begins an evaluation.
func (e *estimate) begin(s sample) { e.begun, e.evaluating, e.lowest = s, true, s.queue }

// adapt changes the rate after an evaluation that took the given time. arrival is the arrival rate in bit/s.
func (e *estimate) adapt(arrival, media float64, now time.Time, elapsed, rtt time.Duration) {
	switch {
	case now.Before(e.until):
	case e.loss > lossDecrease || e.queue > queueDecrease:
		e.state = Limited
		e.rate = max(decrease*min(e.rate, arrival), minRate)
		e.limit, e.limited, e.until = e.rate, now, now.Add(rtt)
	case e.loss > lossIncrease:
		e.state = Carrying
	default:
		e.state = Carrying
		if now.Sub(e.limited) >= limitMemory {
			e.limit = maxRate
		}
		e.increase(arrival, media, elapsed, rtt)
	}
}

// increase increases the rate if half of it arrived.
func (e *estimate) increase(arrival, media float64, elapsed, rtt time.Duration) {
	most := min(max(unproven*arrival, startRate), maxRate)
	if media > 0 {
		most = min(most, max(enough*media, startRate))
	}
	if arrival < e.rate/2 || e.rate >= most {
		return
	}
	next := e.rate + additivePacket*elapsed.Seconds()/max(rtt, evaluationInterval/10).Seconds()
	if e.rate < e.limit {
		next = max(next, min(e.rate*fastIncrease, e.limit))
	}
	e.rate = min(next, most)
}
