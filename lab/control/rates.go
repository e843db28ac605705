package control

import (
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab"
)

// rates sets the figures about rates from samples.
func (r *Record) rates(result *Result) {
	var goodput, best, capacity, estimate, squares float64
	for i, l := range r.receivers {
		own := 0.0
		for _, x := range l.samples {
			if x.at <= r.scenario.measured {
				continue
			}
			own += x.goodput
			estimate += x.estimate
			if i == 0 || r.scenario.participants > 0 || r.scenario.bidirectional() {
				best += r.ladder.best(x.capacity)
				capacity += x.capacity
			}
		}
		goodput += own
		squares += own * own
	}
	if capacity == 0 {
		return
	}
	result.Utilisation, result.ShareOfCapacity, result.EstimateShare = goodput/best, goodput/capacity, estimate/capacity
	if r.scenario.participants > 0 {
		r.room(result)
		return
	}
	if n := float64(len(r.receivers)); n > 1 && r.scenario.equal() {
		result.JainIndex = figure(goodput * goodput / (n * squares))
	}
	if n := float64(r.scenario.cubics + r.scenario.pragues); n > 0 {
		wire := goodput * (1 + headerShare)
		result.ShareOfFair = figure(wire / (r.scenario.ofL4S() * capacity / (n + 1)))
	}
}

// ShareWithHeaders returns ShareOfCapacity with the headers of packets, as the link counts its rate.
func (r *Result) ShareWithHeaders() float64 { return r.ShareOfCapacity * (1 + headerShare) }

// ofL4S returns the share of the link's rate that the receiver and its competitors share. Paper 000's queue marks L4S
// flows above half of the link's rate, so beside Prague it is half.
func (s *scenario) ofL4S() float64 {
	name, _, _ := strings.Cut(s.options.Queue, ":")
	if s.pragues > 0 && name == netem.QueuePaper000 {
		return 0.5
	}
	return 1
}

// fair returns the fair share of the receiver or of a competitor, in bit/s.
func (s *scenario) fair() float64 {
	from, until := s.measured, s.options.Duration
	return s.ofL4S() * s.trace.Bits(from, until) / (until - from).Seconds() / float64(s.cubics+s.pragues+1)
}

func figure(v float64) *float64 { return &v }

const (
	// held is the time for which a rate must be kept to count as reached.
	held = time.Second
	// ofTarget and ofRisen are the shares that count as reached, of a target and of the restored rate of a link.
	ofTarget, ofRisen = 0.9, 0.8
	// longQueue is the queue delay that counts as too long.
	longQueue = 50 * time.Millisecond
	// l4sQueue is the queue delay that counts as short again after a cliff.
	l4sQueue = 5 * time.Millisecond
)

// changes sets the figures about the duration of changes.
func (r *Record) changes(result *Result) {
	sc := r.scenario
	samples := r.receivers[0].samples
	sent := func(i int) float64 { return meanSent(samples[:i+1]) }
	if sc.target > 0 {
		result.SecondsToTarget = figure(reached(samples, sc.begin, sc.target*ofTarget, sent))
	}
	if sc.cliff {
		result.Cliff = r.receivers[0].cliff(sc.options.Duration)
	}
	if sc.bleach != "" {
		result.FallbackSeconds = r.receivers[0].fallback(sc.options.Duration)
	}
	if sc.rise > 0 {
		risen := float64(sc.trace.RateAt(sc.rise))
		result.RecoverySeconds = figure(reached(samples, sc.rise, risen*ofRisen, sent))
		short := func(i int) float64 { return -float64(samples[i].queue) }
		result.QueueSeconds = figure(reached(samples, sc.fall, -float64(longQueue), short))
		result.QualitySeconds = figure(r.lowered(sc.fall).Seconds())
	}
	if outages := sc.trace.Outages(); len(outages) > 0 {
		result.RecoverySeconds = figure(r.recovery(outages))
	}
}

// cliff returns the figures of a fall of the link's rate in a run that ends at end.
func (l *ledger) cliff(end time.Duration) *CliffFigures {
	var longest, long time.Duration // long is the last time of a long queue
	for _, d := range l.fallen {
		longest = max(longest, d.delay)
		if d.delay >= l4sQueue && d.at <= end && (long == 0 || d.at-long < held) {
			long = d.at
		}
	}
	return &CliffFigures{LongestQueue: lab.Milliseconds(longest), ShortAfter: max(long-l.fall, 0).Seconds()}
}

// fallback returns the time from bleachAt until packets left with another codepoint, in seconds; the time until the end
// of the run if they did not; nil if packets were not ECN-capable at bleachAt.
func (l *ledger) fallback(end time.Duration) *float64 {
	before := ecn.NotECT
	for _, c := range l.codepoints {
		if c.at > bleachAt {
			end = c.at
			break
		}
		before = c.codepoint
	}
	if before == ecn.NotECT {
		return nil
	}
	return figure((end - bleachAt).Seconds())
}

// meanSent returns the mean rate sent in the last second, 30 frames. A sample covers three frames. Their sizes alone
// vary the rate by 3 %, and one frame more or less varies the rate by a third, so single samples would fall below a
// target that the rate keeps.
func meanSent(samples []sample) float64 {
	const window = int(time.Second / sampleInterval)
	sum := 0.0
	latest := samples[max(0, len(samples)-window):]
	for _, x := range latest {
		sum += x.sent
	}
	return sum / float64(len(latest))
}

// lowered returns the time from the fall of the link's rate until the allocated rate fitted into the new rate. A
// comparison with the earlier allocation would be meaningless because frames vary in size.
func (r *Record) lowered(fall time.Duration) time.Duration {
	left := float64(r.scenario.trace.RateAt(fall))
	for _, x := range r.receivers[0].samples {
		if x.at > fall && x.allocated <= left {
			return x.at - fall
		}
	}
	return r.scenario.options.Duration - fall
}

// ofBest is the share of a link's best possible rate that counts as recovered. Right after an outage the rates of
// wireless links change by half from one second to the next.
const ofBest = 0.5

// recovery returns the longest time from the end of an outage until the rate received in a second was half of the
// link's best possible rate, in seconds. If the next outage comes first, the time until that outage counts.
func (r *Record) recovery(outages []netem.Interval) float64 {
	longest := time.Duration(0)
	for i, o := range outages {
		until := r.scenario.options.Duration
		if i+1 < len(outages) {
			until = min(until, outages[i+1].Start)
		}
		longest = max(longest, r.recovered(o.End, until))
	}
	return longest.Seconds()
}

// recovered returns the time from from to the beginning of the first second, before until, that satisfies the condition
// of recovery.
func (r *Record) recovered(from, until time.Duration) time.Duration {
	const window = int(held / sampleInterval)
	samples, fresh := r.receivers[0].samples, r.receivers[0].fresh(from)
	for i := range samples {
		if samples[i].at-sampleInterval < from || i+window > len(samples) {
			continue
		}
		if samples[i+window-1].at > until {
			break
		}
		var goodput, best float64
		for j := i; j < i+window; j++ {
			goodput += fresh[j]
			best += r.ladder.best(samples[j].capacity) * sampleInterval.Seconds()
		}
		if goodput >= ofBest*best {
			return samples[i].at - sampleInterval - from
		}
	}
	return until - from
}

// reached returns the time, in seconds, from from until a rate reached bound and stayed there for a second; if this
// never happened, the time until the last sample.
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
