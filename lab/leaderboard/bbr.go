package leaderboard

import (
	"math"
	"sort"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/lab/control"
)

// The parameters of BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00, section 4).
const (
	bbrHighGain    = 2.885 // 2/ln 2
	bbrUp, bbrDown = 1.25, 0.75
	bbrPhases      = 8                // of a gain cycle: up, down and six cruising
	bbrRounds      = 10               // of the filter of the bandwidth
	bbrTripTime    = 10 * time.Second // of the filter of the round trip
	bbrProbeRTT    = 200 * time.Millisecond
	bbrFull        = 1.25 // growth in a round below which the pipe is full, after bbrFullRounds rounds
	bbrFullRounds  = 3
	bbrWindowGain  = 2
)

// bbrState is the state of BBR.
type bbrState int

const (
	bbrStartup bbrState = iota
	bbrDrain
	bbrProbeBandwidth
	bbrProbeTrip
)

// bbr is the congestion control of TCP BBR, version 1, as the controller of frames. Where BBR raises its pacing gain,
// media alone would not follow, because the encoder's rate is that of the estimate: the phase is a probe, which is
// padded.
type bbr struct {
	base
	state      bbrState
	since      time.Time // of the state, or of the phase
	phase      int
	probed     bool // the probe of the phase has been asked for
	probes     int
	sent       []sentAt // with the number of delivered bytes when a packet left
	delivered  int
	rounds     int
	roundEnd   time.Time // packets sent from then on end the round
	bandwidth  []bandwidthSample
	full       float64 // bandwidth at the last growth in startup
	fullRounds int
	smallest   time.Duration // round trip
	smallestAt time.Time
	resume     bbrState // state after bbrProbeTrip
}

type bandwidthSample struct {
	round int
	rate  float64
}

func newBBR(s control.EstimatorStart) congestion.Estimator {
	return &bbr{base: base{limits: s.Limits, trip: s.RTT}, since: s.Now, smallest: s.RTT, smallestAt: s.Now}
}

// Sent implements congestion.Estimator.
func (b *bbr) Sent(now time.Time, _ int) {
	b.sent = append(b.sent, sentAt{now, b.delivered})
	drop := 0
	for drop < len(b.sent)-1 && now.Sub(b.sent[drop].at) > 2*flightMemory {
		drop++
	}
	b.sent = b.sent[drop:]
}

// before returns the number of bytes delivered when a packet left.
func (b *bbr) before(sent time.Time) (delivered int, known bool) {
	i := sort.Search(len(b.sent), func(i int) bool { return b.sent[i].at.After(sent) })
	if i == 0 {
		return 0, false
	}
	return b.sent[i-1].total, true
}

// Report implements congestion.Estimator.
func (b *bbr) Report(now time.Time, results []feedback.PacketResult) {
	b.report(now, results)
	if b.latest > 0 && (b.latest <= b.smallest || now.Sub(b.smallestAt) > bbrTripTime) {
		if now.Sub(b.smallestAt) > bbrTripTime && b.state == bbrProbeBandwidth {
			b.resume = b.state
			b.enter(bbrProbeTrip, now)
		}
		b.smallest, b.smallestAt = b.latest, now
	}
	var newest *feedback.PacketResult
	for i := range results {
		r := &results[i]
		if !r.Received {
			continue
		}
		b.delivered += r.Size
		if newest == nil || r.Sent.After(newest.Sent) {
			newest = r
		}
	}
	if newest == nil {
		return
	}
	if !newest.Sent.Before(b.roundEnd) {
		b.rounds++
		b.roundEnd = now
		b.endRound(now)
	}
	if before, known := b.before(newest.Sent); known {
		// Reports come at intervals. What they acknowledge was delivered in a round trip and an interval.
		elapsed := max(now.Sub(newest.Sent), time.Millisecond)
		b.sample(float64(b.delivered-before) * 8 / elapsed.Seconds())
	}
	b.advance(now)
}

// sample adds a delivery rate to the filter.
func (b *bbr) sample(rate float64) {
	keep := b.bandwidth[:0]
	for _, s := range b.bandwidth {
		if s.round > b.rounds-bbrRounds && s.rate > rate {
			keep = append(keep, s)
		}
	}
	b.bandwidth = append(keep, bandwidthSample{b.rounds, rate})
}

// rate returns the bandwidth in bit/s, the start rate while it is unknown.
func (b *bbr) rate() float64 {
	if len(b.bandwidth) == 0 {
		return float64(b.limits.Start)
	}
	return b.bandwidth[0].rate
}

// endRound detects that the startup has filled the pipe.
func (b *bbr) endRound(now time.Time) {
	if b.state != bbrStartup {
		return
	}
	if b.rate() >= bbrFull*b.full {
		b.full, b.fullRounds = b.rate(), 0
		return
	}
	if b.fullRounds++; b.fullRounds >= bbrFullRounds {
		b.enter(bbrDrain, now)
	}
}

// advance changes the state with time.
func (b *bbr) advance(now time.Time) {
	elapsed := now.Sub(b.since)
	switch b.state {
	case bbrDrain:
		if b.latest <= b.smallest+b.smallest/4 || elapsed > time.Second {
			b.enter(bbrProbeBandwidth, now)
			b.phase = 2
		}
	case bbrProbeBandwidth:
		if elapsed >= b.smallest {
			b.phase, b.since, b.probed = (b.phase+1)%bbrPhases, now, false
		}
	case bbrProbeTrip:
		if elapsed >= bbrProbeRTT+b.smallest {
			b.enter(b.resume, now)
			b.phase = 2
		}
	case bbrStartup:
		if elapsed >= b.smallest {
			b.since, b.probed = now, false
		}
	}
}

func (b *bbr) enter(state bbrState, now time.Time) { b.state, b.since, b.probed = state, now, false }

// gain returns the pacing gain.
func (b *bbr) gain() float64 {
	switch {
	case b.state == bbrStartup:
		return bbrHighGain
	case b.state == bbrDrain:
		return 1 / bbrHighGain
	case b.state == bbrProbeBandwidth && b.phase == 0:
		return bbrUp
	case b.state == bbrProbeBandwidth && b.phase == 1:
		return bbrDown
	}
	return 1
}

// Next implements congestion.Estimator.
func (b *bbr) Next() time.Time { return time.Time{} }

// Probe implements congestion.Estimator.
func (b *bbr) Probe(now time.Time) (congestion.ProbeCluster, bool) {
	gain := b.gain()
	if gain <= 1 || b.probed {
		return congestion.ProbeCluster{}, false
	}
	b.probed = true
	b.probes++
	rate := min(gain*b.rate(), float64(b.limits.Max))
	return congestion.ProbeCluster{ID: b.probes, Rate: congestion.Bitrate(rate), Duration: b.smallest,
		MinBytes: int(rate * b.smallest.Seconds() / 8), MinPackets: 1}, true
}

// Estimate implements congestion.Estimator.
func (b *bbr) Estimate() congestion.Bitrate { return b.Stats().Estimate }

// Stats implements congestion.Estimator.
func (b *bbr) Stats() congestion.Stats {
	rate := b.rate()
	window := bbrWindowGain * rate * b.smallest.Seconds() / 8
	switch b.state {
	case bbrProbeTrip:
		window = 4 * segment
	case bbrStartup:
		window *= bbrHighGain / bbrWindowGain
	}
	// An interval of reports is in flight besides: reports are not acknowledgements of single packets.
	window += rate * reportInterval.Seconds() / 8 / 5
	s := b.stats(math.Min(b.gain(), 1) * rate)
	s.Window = int(max(window, 4*segment))
	return s
}
