package congestion

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// A change of delay by more than clockJump is a clock change, not a queue, as in libwebrtc.
	clockJump = 3 * time.Second
	// maxSize is the largest IP packet.
	maxSize = 1<<16 - 1
)

// take counts the packets of a report and collects the received ones in the order of arrival. It returns the number of
// packets that met a queue, and the number of them that were lost.
func (g *gcc) take(now time.Duration, results []feedback.PacketResult) (metLost, met int) {
	g.arrivals = g.arrivals[:0]
	for _, r := range results {
		r.Size = min(max(r.Size, 0), maxSize)
		sent := r.Sent.Sub(g.epoch)
		if r.Probe != 0 {
			g.tried = now
		}
		if r.Received {
			g.arrivals = append(g.arrivals, arrival{sent: sent, arrived: r.Arrived, size: uint16(r.Size),
				ecn: r.ECN & 3, left: r.SentECN, probe: int32(r.Probe)})
			g.stats.countECN(r.ECN)
		}
		switch {
		case r.Late:
			if r.Received && g.stats.Lost > 0 {
				g.stats.Lost--
				g.stats.Received++
				g.loss.late()
			}
		case r.Received:
			g.stats.Received++
			g.queued = g.queue.delayOf(r.Arrived - sent)
			g.loss.add(sent, r.Size, true, g.queued)
			if g.queued > calmQueue {
				met++
			}
		default:
			g.stats.Lost++
			if sent >= max(g.silence.ended, g.relieved) {
				g.loss.add(sent, r.Size, false, g.queued)
				if g.queued > calmQueue {
					met++
					metLost++
				}
			}
		}
		g.reported = true
	}
	byArrival := func(a, b arrival) int { return cmp.Compare(a.arrived, b.arrived) }
	if !slices.IsSortedFunc(g.arrivals, byArrival) {
		slices.SortStableFunc(g.arrivals, byArrival)
	}
	return metLost, met
}

// measureRoundTrip updates the round trip from the fastest packet of a report, excluding the time that the packet
// waited for the last one of the report. It returns the excess over the smallest round trip.
func (g *gcc) measureRoundTrip(now time.Duration) (queued time.Duration) {
	if len(g.arrivals) == 0 {
		return math.MaxInt64
	}
	last := g.arrivals[len(g.arrivals)-1].arrived
	quickest := now
	for _, a := range g.arrivals {
		quickest = min(quickest, now-a.sent-(last-a.arrived))
	}
	quickest = max(quickest, 0)
	g.newest = g.arrivals[len(g.arrivals)-1].sent
	if g.empty == 0 || quickest < g.empty {
		g.empty = quickest
	}
	if g.rtt == 0 {
		g.rtt = quickest
	} else {
		g.rtt += (quickest - g.rtt) / 8
	}
	return quickest - g.empty
}

// LongestTrip returns the longest round trip of the packets of a report received at now, queues included, excluding the
// time that packets waited for the last one of the report. It returns 0 if no packet was received.
func LongestTrip(now time.Time, results []feedback.PacketResult) time.Duration {
	var longest, last time.Duration // by the receiver's clock
	known := false
	for i := range results {
		if r := &results[i]; r.Received {
			if trip := r.Arrived + now.Sub(r.Sent); !known || trip > longest {
				longest = trip
			}
			if !known || r.Arrived > last {
				last = r.Arrived
			}
			known = true
		}
	}
	return max(longest-last, 0)
}

// arrive passes the received packets of a report to the parts that use packet times. It returns the measured rate of a
// probe in bit/s, or 0.
func (g *gcc) arrive(now time.Duration) float64 {
	probe := 0.0
	g.lost = false
	for _, a := range g.arrivals {
		delay := a.arrived - a.sent
		if g.delays && (delay-g.delay > clockJump || g.delay-delay > clockJump) {
			g.forget()
		}
		g.delay, g.delays = delay, true
		if delta, ok := g.groups.add(a.sent, a.arrived); ok {
			g.detector.add(g.trend.add(delta), delta)
		}
		g.queue.add(a.arrived, delay)
		queued := g.queue.delayOf(delay)
		if queued > shortQueue {
			g.waited = now
		}
		if left := g.collapse.add(a.sent, a.arrived, int(a.size), queued,
			collapseGain+collapseVariations*g.queue.variation, collapseShare, g.rate.rate); left > 0 {
			g.left, g.lost = left, true
		}
		g.longest = max(g.longest, g.queue.delay)
		g.acked.add(a.sent, a.arrived, int(a.size))
		if a.probe == 0 {
			continue
		}
		if rate, cluster, ok := g.trains.add(int(a.probe), a.sent, a.arrived, int(a.size)); ok {
			probe = rate
			g.measured(cluster)
		}
	}
	return probe
}

// measured counts each cluster with a measured rate once.
func (g *gcc) measured(c ProbeCluster) {
	t := &g.trains.trains[c.ID%trains]
	if !t.counted {
		t.counted = true
		g.stats.ProbesMeasured++
	}
}
