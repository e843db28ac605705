package congestion

import (
	"math"
	"time"
)

const (
	// Twenty observations of a quarter of a second at least, the older ones with less weight, as in libwebrtc: about the last three seconds count.
	lossWindow = 20
	lossWeight = 0.9
	// minObservations is how many have to be there until they limit anything.
	minObservations = 3
	// recentObservations are a second.
	recentObservations = 4
	// The inherent loss is at least this, so that its logarithm exists, and begins with the second; Newton's step is shortened to the third. libwebrtc's.
	minInherentLoss   = 1e-3
	startInherentLoss = 0.01
	newtonStep        = 0.75
	newtonSteps       = 4 // leave 0.25⁴ of the distance. libwebrtc makes one per observation
	// unexplained is how far the mean loss has to exceed the inherent one to count as more than that.
	unexplained = 1.1
	// highLoss is how far beyond InherentMax the mean loss turns the preference of higher rates into one of lower ones.
	highLoss = 0.05
	// calmQueue is a queue that no router drops packets for; minCalm is how many packets have to have met one, and calmMargin what the path may lose beyond
	// what those tell.
	calmQueue  = 2 * time.Millisecond
	minCalm    = 20
	calmMargin = 0.01
	// While losses limit the rate it grows by this factor at most in this time.
	maxLossGrowth      = 1.3
	lossGrowthInterval = 300 * time.Millisecond
)

// lossObservation is what happened to the packets sent within some time.
type lossObservation struct {
	packets, lost  int
	calm, calmLost int // of those, sent when the queue was empty
	bytes          int
	rate           float64 // at which they were sent, bit/s
}

// lossModel is an explanation of losses: a share that is lost at any rate, and what exceeds a bandwidth.
type lossModel struct {
	inherent  float64
	bandwidth float64 // bit/s
}

// lossEstimator finds the rate beyond which losses grow, after libwebrtc's second loss-based estimator: of several candidates it takes the model under
// which the observed losses are the most likely. Losses that do not grow with the rate are then the path's and no reason to send less.
//
// libwebrtc's preference of higher rates is linear in the rate, and its bounds are absolute (75 kbit/s divided by the loss beyond 5 %). They are made for
// up to some Mbit/s: at 100 the preference hides any loss below 15 %, and the bounds hold the rate below 1.5 Mbit/s at 10 %. Here both are relative.
type lossEstimator struct {
	cfg      LossConfig
	window   [lossWindow]lossObservation
	weights  [lossWindow]float64 // by age
	count    int                 // of observations so far
	used     int                 // of those, how many update has seen
	partial  lossObservation
	began    time.Duration // when the first packet of partial was sent
	begun    bool
	best     lossModel // bandwidth 0 while there is none
	limiting bool      // the bandwidth was below the other estimate
	bound    float64   // of inherent
	ceiling  float64   // bandwidth that may not be exceeded
	ceilingT time.Duration
}

func newLossEstimator(cfg LossConfig) lossEstimator {
	l := lossEstimator{cfg: cfg, bound: cfg.InherentMax, best: lossModel{inherent: startInherentLoss}}
	weight := 1.0
	for i := range l.weights {
		l.weights[i] = weight
		weight *= lossWeight
	}
	return l
}

// add takes a packet, in the order of sending. An observation ends with the first packet after cfg.Interval, which in traffic of frames is the first of a
// frame soon: then it spans whole frame intervals, and its rate is right.
func (l *lossEstimator) add(sent time.Duration, size int, received bool, queued time.Duration) {
	if !l.begun {
		l.begun, l.began = true, sent
	}
	if elapsed := sent - l.began; elapsed >= l.cfg.Interval && l.partial.packets > 0 {
		l.partial.rate = float64(l.partial.bytes) * 8 / elapsed.Seconds()
		l.window[l.count%lossWindow] = l.partial
		l.count++
		l.partial, l.began = lossObservation{}, sent
	}
	lost := 1
	if received {
		lost = 0
	}
	l.partial.packets++
	l.partial.lost += lost
	l.partial.bytes += size
	if queued <= calmQueue {
		l.partial.calm++
		l.partial.calmLost += lost
	}
}

// late takes a packet that had been reported as lost.
func (l *lossEstimator) late() {
	if l.partial.lost > 0 {
		l.partial.lost--
		l.partial.calmLost = min(l.partial.calmLost, l.partial.lost)
	}
}

// update looks at new observations, if there are any. delayBased is the other estimate; acked is what is acknowledged, 0 where it says nothing.
//
// The bandwidth is the least estimate at least. One that went on to fall, by a twentieth per observation, would be at a thousandth of that within a minute, and have to come back from
// there before any of it shows.
func (l *lossEstimator) update(now time.Duration, delayBased, acked float64, limits Limits) {
	if l.used == l.count {
		return
	}
	l.used = l.count
	if l.best.bandwidth == 0 {
		l.best.bandwidth = delayBased
	}
	least := float64(limits.Min)
	l.best.bandwidth = max(l.best.bandwidth, least)
	loss := l.loss()
	l.bound = l.inherentBound()
	best, most := l.best, math.Inf(-1)
	candidates := [...]float64{1.02 * l.best.bandwidth, l.best.bandwidth, 0.95 * l.best.bandwidth, acked, max(delayBased, l.best.bandwidth)}
	bound := float64(limits.Max)
	if l.limiting {
		bound = min(bound, l.ceiling)
	}
	bound = max(bound, l.best.bandwidth)
	for _, bandwidth := range candidates {
		if bandwidth <= 0 {
			continue
		}
		candidate := l.fit(lossModel{inherent: l.best.inherent, bandwidth: min(max(bandwidth, least), bound)})
		if objective := l.objective(candidate, loss); objective > most {
			best, most = candidate, objective
		}
	}
	if l.present(loss) > unexplained*best.inherent && best.bandwidth > l.best.bandwidth {
		// There are losses that the path does not explain.
		best.bandwidth = l.best.bandwidth
	}
	l.best = best
	l.limiting = l.count >= minObservations && best.bandwidth < delayBased
	if now-l.ceilingT >= lossGrowthInterval {
		l.ceiling, l.ceilingT = maxLossGrowth*best.bandwidth, now
	}
}

// limit is the bandwidth beyond which losses grow, where that is below the other estimate.
func (l *lossEstimator) limit() (float64, bool) { return l.best.bandwidth, l.limiting }

// each calls f with every observation and its weight.
func (l *lossEstimator) each(f func(o *lossObservation, weight float64)) {
	for age := range min(l.count, lossWindow) {
		f(&l.window[(l.count-1-age)%lossWindow], l.weights[age])
	}
}

// loss is the weighted mean share of lost packets.
func (l *lossEstimator) loss() float64 {
	var packets, lost float64
	l.each(func(o *lossObservation, weight float64) {
		packets += weight * float64(o.packets)
		lost += weight * float64(o.lost)
	})
	if packets == 0 {
		return 0
	}
	return lost / packets
}

// present is the mean loss as long as there are losses, and 0 once there was none for a second: what is over must not hold the rate down for as long as it is
// remembered.
func (l *lossEstimator) present(loss float64) float64 {
	if l.over() {
		return 0
	}
	return loss
}

// over tells whether nothing was lost for a second.
func (l *lossEstimator) over() bool {
	for age := range min(l.count, recentObservations) {
		if l.window[(l.count-1-age)%lossWindow].lost > 0 {
			return false
		}
	}
	return true
}

// inherentBound is the largest share that may be put down to the path: the share that was lost while the queue was empty, with a margin for chance, and
// InherentMax. Where a queue is short, the bursts of frames overflow it at any rate, which no dependence on the rate tells from losses of the path.
func (l *lossEstimator) inherentBound() float64 {
	var packets, lost float64
	l.each(func(o *lossObservation, weight float64) {
		packets += weight * float64(o.calm)
		lost += weight * float64(o.calmLost)
	})
	if packets < minCalm {
		return l.cfg.InherentMax
	}
	p := lost / packets
	margin := 2*math.Sqrt(p*(1-p)/packets) + calmMargin
	return min(max(p+margin, minInherentLoss), l.cfg.InherentMax)
}

// probability is that of the loss of a packet sent at a rate.
func (m lossModel) probability(rate float64) float64 {
	p := m.inherent
	if rate > m.bandwidth {
		p += (1 - m.inherent) * (rate - m.bandwidth) / rate
	}
	return min(max(p, 1e-6), 1-1e-6)
}

// fit finds the most likely inherent loss by Newton's method.
func (l *lossEstimator) fit(m lossModel) lossModel {
	for range newtonSteps {
		m.inherent = min(max(m.inherent, minInherentLoss), l.bound)
		var first, second float64
		l.each(func(o *lossObservation, weight float64) {
			p := m.probability(o.rate)
			lost, received := float64(o.lost), float64(o.packets-o.lost)
			first += weight * (lost/p - received/(1-p))
			second -= weight * (lost/(p*p) + received/((1-p)*(1-p)))
		})
		if second < 0 {
			m.inherent -= newtonStep * first / second
		}
	}
	m.inherent = min(max(m.inherent, minInherentLoss), l.bound)
	return m
}

// objective is the logarithm of the likelihood of what was observed, with a preference of higher rates. Losses of a share d beyond what a model explains
// cost about d²/2p(1-p) per packet, so that a bias of 0.2 puts up with some 2 % before it gives in.
func (l *lossEstimator) objective(m lossModel, loss float64) float64 {
	bias := l.cfg.Bias * math.Log(m.bandwidth)
	if loss > l.cfg.InherentMax+highLoss {
		bias = -bias
	}
	var sum float64
	l.each(func(o *lossObservation, weight float64) {
		p := m.probability(o.rate)
		sum += weight * (float64(o.lost)*math.Log(p) + float64(o.packets-o.lost)*math.Log(1-p) + float64(o.packets)*bias)
	})
	return sum
}
