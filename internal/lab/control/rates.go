package control

import (
	"time"

	"github.com/volsfu/volsfu/internal/lab"
	"github.com/volsfu/volsfu/internal/netem"
)

// rates fills in the figures about rates from samples.
func (s *Simulation) rates(r *Result) {
	var goodput, best, capacity, estimate, sum, squares float64
	count := 0
	for i, f := range s.flows {
		own := 0.0
		for _, x := range f.ledger.samples {
			if x.at <= s.scenario.measured {
				continue
			}
			own += x.goodput
			estimate += x.estimate
			if i == 0 {
				best += f.publisher.ladder.best(x.capacity)
				capacity += x.capacity
				count++
			}
		}
		goodput += own
		sum += own
		squares += own * own
	}
	if count == 0 {
		return
	}
	r.Utilisation, r.ShareOfCapacity, r.EstimateShare = goodput/best, goodput/capacity, estimate/capacity
	if n := float64(len(s.flows)); n > 1 {
		r.JainIndex = figure(sum * sum / (n * squares))
	}
	if n := float64(len(s.competitors)); n > 0 {
		wire := goodput * (fragmentSize + overheadSize) / fragmentSize
		r.ShareOfFair = figure(wire / (capacity / (n + 1)))
	}
}

func figure(v float64) *float64 { return &v }

const (
	// held is for how long a rate has to be kept that counts as reached.
	held = time.Second
	// ofTarget and ofRisen are the shares of a target, and of a link that has its rate again, that count as reached.
	ofTarget, ofRisen = 0.9, 0.8
	// longQueue is what is too long for a queue.
	longQueue = 50 * time.Millisecond
)

// changes fills in how long changes took.
func (s *Simulation) changes(r *Result) {
	sc := s.scenario
	samples := s.flows[0].ledger.samples
	sent := func(i int) float64 { return meanSent(samples[:i+1]) }
	if sc.target > 0 {
		r.SecondsToTarget = figure(reached(samples, sc.begin, sc.target*ofTarget, sent))
	}
	if sc.fall > 0 {
		risen := float64(sc.trace.RateAt(sc.rise))
		r.RecoverySeconds = figure(reached(samples, sc.rise, risen*ofRisen, sent))
		short := func(i int) float64 { return -float64(samples[i].queue) }
		r.QueueSeconds = figure(reached(samples, sc.fall, -float64(longQueue), short))
		r.QualitySeconds = figure(s.lowered(sc.fall).Seconds())
	}
	if outages := sc.trace.Outages(); len(outages) > 0 {
		r.RecoverySeconds = figure(s.recovery(outages))
	}
	if len(s.competitors) > 0 {
		r.Others = s.others()
	}
}

// meanSent is what was sent in the last half second, 15 frames: less varies by more than what is to be told.
func meanSent(samples []sample) float64 {
	const window = int(500 * time.Millisecond / sampleInterval)
	sum := 0.0
	latest := samples[max(0, len(samples)-window):]
	for _, x := range latest {
		sum += x.sent
	}
	return sum / float64(len(latest))
}

// lowered is how long after a time less was allocated than before.
func (s *Simulation) lowered(from time.Duration) time.Duration {
	before := 0.0
	for _, x := range s.flows[0].ledger.samples {
		if x.at <= from {
			before = x.allocated
		} else if x.allocated < before {
			return x.at - from
		}
	}
	return s.scenario.options.Duration - from
}

const (
	// ofBest is the share of what a link would carry at best that counts as recovered. Right after an outage the rates of wireless links change by half from one
	// second to the next.
	ofBest = 0.5
	// shortUp is what a link has to be up between two outages so that there is something to recover.
	shortUp = 4 * time.Second
)

// recovery is the longest that it took after an outage until what came in a second was half of what the link would have carried at best, in seconds.
func (s *Simulation) recovery(outages []netem.Interval) float64 {
	longest := time.Duration(0)
	for i, o := range outages {
		until := s.scenario.options.Duration
		if i+1 < len(outages) {
			until = min(until, outages[i+1].Start)
		}
		if until-o.End >= shortUp {
			longest = max(longest, s.recovered(o.End, until))
		}
	}
	return longest.Seconds()
}

// recovered is when the first second of those between two times has come that recovery asks for, counted from the first time to its beginning.
func (s *Simulation) recovered(from, until time.Duration) time.Duration {
	const window = int(held / sampleInterval)
	f := s.flows[0]
	samples := f.ledger.samples
	for i := range samples {
		if samples[i].at-sampleInterval < from || i+window > len(samples) {
			continue
		}
		if samples[i+window-1].at > until {
			break
		}
		var goodput, best float64
		for _, x := range samples[i : i+window] {
			goodput += x.goodput
			best += f.publisher.ladder.best(x.capacity)
		}
		if goodput >= ofBest*best {
			return samples[i].at - sampleInterval - from
		}
	}
	return until - from
}

// besides is how long competitors are looked at after a receiver has joined them.
const besides = 3 * time.Second

// others are the figures of the competitors.
func (s *Simulation) others() *OtherFigures {
	begin := s.scenario.begin
	var delays lab.Distribution
	var offered, discarded float64
	for _, c := range s.competitors {
		for _, d := range c.delays {
			if d.at >= begin && d.at < begin+besides {
				delays.Add(d.delay)
			}
		}
		for _, x := range c.samples {
			if x.at > begin && x.at <= begin+besides {
				offered += float64(x.offered)
				discarded += float64(x.discarded)
			}
		}
	}
	return &OtherFigures{Loss: discarded / max(offered, 1), QueueP95: lab.Milliseconds(delays.Percentile(0.95))}
}

// reached is how long after a time a rate came to a bound to stay there for a second, in seconds; the time until the last sample if it did not.
func reached(samples []sample, from time.Duration, bound float64, rate func(int) float64) float64 {
	since := time.Duration(-1)
	for i := range samples {
		x := &samples[i]
		switch {
		case x.at <= from:
		case rate(i) < bound:
			since = -1
		case since < 0:
			since = x.at - sampleInterval
		}
		if since >= 0 && x.at-since >= held {
			return max(since-from, 0).Seconds()
		}
	}
	return (samples[len(samples)-1].at - from).Seconds()
}
