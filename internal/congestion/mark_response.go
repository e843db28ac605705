package congestion

import (
	"math"
	"time"
)

const (
	// virtualTrip is the round trip of which a flow behaves, whatever its own is: the reference of TCP Prague and
	// udp_prague (draft-briscoe-iccrg-prague-congestion-control section 2.4.4). Flows with the same virtual round trip
	// have the same rate at the same share of marks.
	virtualTrip = 25 * time.Millisecond
	// markSegment, in bits, is the growth of a virtual round trip: one segment of 1,500 bytes, as other Prague flows
	// have, whatever the own packet size is. It is 480 kbit/s every 25 ms, 19.2 Mbit/s per second. With a share p of
	// marks the rate is in equilibrium at 2 markGrowth / p: two marks in a virtual round trip.
	markSegment = 1500 * 8
	markGrowth  = markSegment / (float64(virtualTrip) / float64(time.Second)) // bit/s per virtual round trip
	// alphaDecay is the weight of a virtual round trip in the mean share of marks (section 2.4.2), alphaAttack the
	// weight while the mean grows. A paced sender that is told of a mark after a round trip and up to 5 ms more meets
	// more marks of one overshoot than a sender whose acknowledgements slow down with the queue. With the weight of
	// Prague a receiver has 0.76 to 0.84 of the fair rate beside one to three Prague flows, with 3/4 of it 0.88 to 1.01
	// (vollab control prague:N, DualPI2).
	alphaDecay  = 1.0 / 16
	alphaAttack = 0.75 * alphaDecay
	// A marker that meters the rate (see tickMarks) marks no packet in the pauses between frames, in which others send,
	// and marks the packets that follow those of others: of two flows the one with the higher rate has the smaller
	// share of marks. So growth counts by time there, that is by bytes / the used share of the rate, which is at least
	// leastUsed, and the weight is smaller. In the queue of paper 000 a receiver then has 0.90, 0.85 and 0.86 of the
	// fair rate beside one to three Prague flows that join it, without both 0.88, 0.84 and 0.84.
	meteredAttack = 0.5 * alphaDecay
	leastUsed     = 0.75
	// A mark multiplies the rate by 1 - α/2. leastCut bounds that for paths whose round trip exceeds the virtual one.
	leastCut = 0.5
	// A mark at a queue longer than cutQueue reduces the rate further, so that the rest of the queue drains within
	// cutDrain, two virtual round trips. L4S AQMs mark everything from 1.2 ms on, and arrival times have steps of 1 ms.
	cutQueue = 2 * time.Millisecond
	cutDrain = 50 * time.Millisecond
	// Without marks the rate grows by quickGrowth in a virtual round trip, as that of udp_prague: the queue then grows
	// by 4 % of a virtual round trip, 1 ms, before a mark is felt, and the rate doubles in 0.45 s. After recoverTrips
	// this begins while the rate is below nearLeast times its value at the last marks, and after quietTrips above
	// nearMost times that value; in between the path has shown its capacity, and the rate grows by markGrowth. The
	// marks of flows in equilibrium are one virtual round trip apart; quietTrips is that of udp_prague at 100 Mbit/s
	// (7, and one for each 1.92 MB/s).
	quickGrowth  = 0.04
	recoverTrips = 4
	quietTrips   = 14
	nearLeast    = 0.95
	nearMost     = 1.1
	// While marks have arrived within recentMarks, the rate of a sender that uses little of it is in equilibrium, and
	// grows. Otherwise nothing bounds the rate, and it does not grow.
	recentMarks = time.Second
)

// markedReport is the part of a report that a response to marks uses. Packets of probes, and those that left before the
// last reduction for another reason than marks, do not count.
type markedReport struct {
	acked, marked int           // bytes
	sent          time.Duration // latest departure of a marked packet
	delay         time.Duration // queueing delay of the last marked packet
	latest        time.Duration // latest departure of a packet
	queue         time.Duration // mean queueing delay of the packets, without their own time on the link
	trip          time.Duration // smoothed round trip
	empty         time.Duration // round trip of the empty path
	used          float64       // share of the rate that arrives, 0 to 1
	metered       bool          // by a marker that meters the rate
	limited       bool          // the sender uses little of the rate
}

// period returns the time until a reduction has an effect: a virtual round trip, or a round trip if that is longer.
func (m *markedReport) period() time.Duration { return max(m.trip, virtualTrip) }

// markResponse is the response to marks of Prague (draft-briscoe-iccrg-prague-congestion-control section 2.4), as a
// rate. Growth and α advance by acknowledged bytes and not by time, and a cut is in proportion to the used share of the
// rate: the equilibrium is the same whatever share a sender uses, and nothing changes while nothing is sent.
type markResponse struct {
	rate   float64       // bit/s
	alpha  float64       // mean share of marks, 0 to 1
	cut    time.Duration // time of the last reduction
	marked time.Duration // time of the last report with marks
	top    float64       // rate that the path carries: at the last marks after a virtual round trip without any
	slow   slowLink
}

// newMarkResponse returns a response with the α of which the rate is the equilibrium: Prague's initial α of 1 belongs
// to a slow start that has doubled the rate in the last round trip.
func newMarkResponse(now time.Duration, rate float64) markResponse {
	return markResponse{rate: rate, alpha: min(2*markGrowth/rate, 1), cut: now - virtualTrip, marked: now, top: rate}
}

// seek makes the rate grow fast until the next mark: a probe has shown that the path carries less than the probe, and
// nothing else.
func (r *markResponse) seek() {
	r.marked -= quietTrips*virtualTrip + 1
	r.top = r.rate / nearMost
}

// report returns the rate after a report.
func (r *markResponse) report(now time.Duration, m markedReport) float64 {
	trips := float64(m.acked) * 8 / (r.rate * virtualTrip.Seconds())
	if m.acked > 0 {
		share := float64(m.marked) / float64(m.acked)
		gain := alphaDecay
		if share > r.alpha {
			gain = alphaAttack
			if m.metered {
				gain = meteredAttack
			}
			gain *= math.Sqrt(virtualTrip.Seconds() / max(m.empty, virtualTrip).Seconds())
		}
		r.alpha += (share - r.alpha) * (1 - math.Pow(1-gain, trips))
		if m.metered {
			trips /= max(m.used, leastUsed)
		}
		r.grow(now, m, trips*(1-share))
	}
	if m.marked > 0 {
		r.slow.marked(now, m.delay, m.period(), r.rate)
		r.reduce(now, m)
	}
	r.drain(now, m)
	return r.rate
}

// drain reduces the rate by the queue of a slow link without other flows, once in a period.
func (r *markResponse) drain(now time.Duration, m markedReport) {
	if r.slow.tries(now) {
		r.rate *= slowTry
		r.cut = now
		return
	}
	if !r.slow.alone(r.rate) || m.acked == 0 || m.latest < r.cut+m.trip || now-r.cut < m.period() {
		return
	}
	if rate := r.slow.reduced(r.rate, m.queue); rate < r.rate {
		r.rate, r.cut, r.marked, r.top = rate, now, now, rate
	}
}

// grow raises the rate for the data of some virtual round trips that arrived without marks.
func (r *markResponse) grow(now time.Duration, m markedReport, trips float64) {
	quiet := now - r.marked
	if m.limited && quiet > recentMarks {
		return
	}
	growth := markGrowth
	below := r.rate < nearLeast*r.top && quiet > recoverTrips*virtualTrip
	above := r.rate >= nearMost*r.top && quiet > quietTrips*virtualTrip
	switch {
	case r.slow.alone(r.rate):
		growth = slowGrowth(quiet) * r.rate
	case (below || above) && !m.limited:
		growth = max(growth, quickGrowth*r.rate)
	}
	r.rate += growth * trips
}

// reduce lowers the rate once in a period: by as much as in the virtual round trips of the period together. The marks
// have to belong to packets that left after the last reduction.
func (r *markResponse) reduce(now time.Duration, m markedReport) {
	if now-r.marked > virtualTrip {
		r.top = r.rate
	}
	r.marked = now
	period := m.period()
	if now-r.cut < period || m.sent < r.cut {
		return
	}
	r.cut = now
	drain := max(m.delay-cutQueue, 0).Seconds() / cutDrain.Seconds()
	r.rate *= max((1-r.alpha/2*m.used*period.Seconds()/virtualTrip.Seconds())*(1-drain), leastCut)
}
