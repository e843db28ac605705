package congestion

import (
	"math"
	"time"
)

const (
	// The window has 20 observations of at least 250 ms, weighted by age as in libwebrtc: about the last three seconds
	// count.
	lossWindow = 20
	lossWeight = 0.9
	// minObservations is the number of observations before losses may limit the rate.
	minObservations = 3
	// recentObservations cover one second.
	recentObservations = 4
	// The inherent loss is at least minInherentLoss, so that its logarithm exists, and starts at startInherentLoss.
	// Newton's step is scaled by newtonStep. These are the values of libwebrtc.
	minInherentLoss   = 1e-3
	startInherentLoss = 0.01
	newtonStep        = 0.75
	newtonSteps       = 4 // leaves 0.25⁴ of the distance; libwebrtc makes one step per observation
	// The mean loss must exceed the inherent loss by this factor to count as unexplained.
	unexplained = 1.1
	// If the mean loss exceeds InherentMax by highLoss, the preference for higher rates becomes one for lower rates.
	highLoss = 0.05
	// No router drops packets at a queue of calmQueue. minCalm is the number of packets in such a queue needed for a
	// bound; calmMargin is added to the loss ratio of those packets.
	calmQueue  = 2 * time.Millisecond
	minCalm    = 20
	calmMargin = 0.01
	// While losses limit the rate, the bandwidth grows by at most maxLossGrowth per lossGrowthInterval.
	maxLossGrowth      = 1.3
	lossGrowthInterval = 300 * time.Millisecond
)

// lossObservation counts the packets sent within some time.
type lossObservation struct {
	packets, lost  int
	calm, calmLost int // the packets, and losses, sent while the queue was empty
	bytes          int
	rate           float64 // send rate, bit/s
}

// lossModel explains losses: an inherent share that is lost at any rate, and the traffic beyond a bandwidth.
type lossModel struct {
	inherent  float64
	bandwidth float64 // bit/s
}

// lossEstimator finds the rate above which losses grow, after libwebrtc's second loss-based estimator: it compares
// candidate models and selects the one under which the observed losses are most likely. Losses that do not grow with
// the rate belong to the path and do not reduce the rate.
//
// In libwebrtc the preference for higher rates is linear in the rate, and the bounds are absolute (75 kbit/s divided by
// the loss beyond 5 %). They suit rates of some Mbit/s. At 100 Mbit/s the preference hides any loss below 15 %, and the
// bounds hold the rate below 1.5 Mbit/s at 10 % loss. Here both are relative.
type lossEstimator struct {
	cfg      LossConfig
	window   [lossWindow]lossObservation
	weights  [lossWindow]float64 // by age
	count    int                 // observations so far
	used     int                 // observations that update has processed
	partial  lossObservation
	began    time.Duration // send time of the first packet of partial
	begun    bool
	best     lossModel // bandwidth is 0 while unknown
	limiting bool      // the bandwidth was below the delay-based estimate
	bound    float64   // upper bound of inherent
	ceiling  float64   // upper bound of the bandwidth
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

// add adds a packet in the order of sending. An observation ends with the first packet after cfg.Interval. In frame
// traffic that is soon the first packet of a frame; the observation then covers whole frame intervals and its rate is
// correct.
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

// late corrects a packet that was reported as lost and arrived later.
func (l *lossEstimator) late() {
	if l.partial.lost > 0 {
		l.partial.lost--
		l.partial.calmLost = min(l.partial.calmLost, l.partial.lost)
	}
}

// update processes new observations. delayBased is the other estimate; acked is the acknowledged rate, or 0 if the
// acknowledged rate says nothing about the path.
//
// The bandwidth is not below limits.Min. Otherwise it would go on falling by a twentieth per observation, reach a
// thousandth within a minute, and would have to recover from there before any effect.
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
	candidates := [...]float64{1.02 * l.best.bandwidth, l.best.bandwidth, 0.95 * l.best.bandwidth, acked,
		max(delayBased, l.best.bandwidth)}
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
		// Some losses are not explained by the path.
		best.bandwidth = l.best.bandwidth
	}
	l.best = best
	l.limiting = l.count >= minObservations && best.bandwidth < delayBased
	if now-l.ceilingT >= lossGrowthInterval {
		l.ceiling, l.ceilingT = maxLossGrowth*best.bandwidth, now
	}
}

// limit returns the bandwidth above which losses grow, and whether it is below the delay-based estimate.
func (l *lossEstimator) limit() (float64, bool) { return l.best.bandwidth, l.limiting }

// each calls f with every observation and its weight.
func (l *lossEstimator) each(f func(o *lossObservation, weight float64)) {
	for age := range min(l.count, lossWindow) {
		f(&l.window[(l.count-1-age)%lossWindow], l.weights[age])
	}
}

// loss returns the weighted mean share of lost packets, 0 to 1.
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

// present returns loss while losses occur, and 0 after a second without losses: past losses must not hold the rate down
// for as long as the window remembers them.
func (l *lossEstimator) present(loss float64) float64 {
	if l.over() {
		return 0
	}
	return loss
}

// over reports whether no packet was lost for a second.
func (l *lossEstimator) over() bool {
	for age := range min(l.count, recentObservations) {
		if l.window[(l.count-1-age)%lossWindow].lost > 0 {
			return false
		}
	}
	return true
}

// inherentBound returns the largest loss ratio that may be attributed to the path: the loss ratio of packets that met
// an empty queue, with a margin for chance, and at most InherentMax. Bursts overflow a short queue at any rate, so the
// dependence on the rate cannot separate such losses from those of the path.
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

// probability returns the loss probability of a packet sent at rate.
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

// objective returns the log-likelihood of the observations, with a preference for higher rates. A loss ratio of d
// beyond the model costs about d²/2p(1-p) per packet, so a bias of 0.2 accepts about 2 %.
func (l *lossEstimator) objective(m lossModel, loss float64) float64 {
	bias := l.cfg.Bias * math.Log(m.bandwidth)
	if loss > l.cfg.InherentMax+highLoss {
		bias = -bias
	}
	var sum float64
	l.each(func(o *lossObservation, weight float64) {
		p := m.probability(o.rate)
		sum += weight * (float64(o.lost)*math.Log(p) + float64(o.packets-o.lost)*math.Log(1-p) +
			float64(o.packets)*bias)
	})
	return sum
}
