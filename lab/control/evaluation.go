package control

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/netem"
)

// The cases rfc8867:5.1 to rfc8867:5.8 are those of RFC 8867, sections 5.1 to 5.8: one-way delay of 50 ms, a drop-tail
// queue of 300 ms and rates of a video call, 0.5 to 4 Mbit/s. The media are those of the other cases. The path has no
// jitter of its own.
const (
	evaluationTrip  = 100 * time.Millisecond
	evaluationQueue = "fifo:300"
	// evaluationLeast and evaluationFirst bound the estimate: the cases have links below the default minimum of 1
	// Mbit/s.
	evaluationLeast, evaluationFirst congestion.Bitrate = 150_000, 300_000
	// A short transfer has shortLeast to shortMost bytes, and begins shortPause on average after the one before.
	shortLeast, shortMost = 100e3, 1e6
	shortPause            = 10 * time.Second
	// shortDrain is the least pause, after which no packet of the transfer before is under way.
	shortDrain = 2 * time.Second
	// reportFlow is the number of the flow of the first receiver's reports, if reports pass a bottleneck.
	reportFlow = 1 << 32
)

// evaluation sets a case of RFC 8867.
func (s *scenario) evaluation(text, section string, d *defaults) error {
	const second = time.Second
	d.rtt, d.queue = evaluationTrip, evaluationQueue
	e := &s.options.Estimator
	if e.Min == 0 && e.Start == 0 {
		e.Min, e.Start = evaluationLeast, evaluationFirst
	}
	switch section {
	case "5.1":
		d.duration = 100 * second
		s.trace = steps(d.duration, 0, 1e6, 40, 2.5e6, 60, 0.6e6, 80, 1e6)
	case "5.2":
		d.duration, s.receivers = 125*second, 2
		s.trace = steps(d.duration, 0, 4e6, 25, 2e6, 50, 3.5e6, 75, 1e6, 100, 2e6)
	case "5.3":
		d.duration, s.receivers = 100*second, 2
		s.trace = steps(d.duration, 0, 2e6, 20, 1e6, 40, 0.5e6, 60, 2e6)
		s.backward = steps(d.duration, 0, 2e6, 35, 0.8e6, 70, 2e6)
	case "5.4":
		d.duration, d.link, s.receivers = 120*second, 3.5e6, 3
		s.starts = []time.Duration{0, 20 * second, 40 * second}
	case "5.5":
		d.duration, d.link, s.receivers = 300*second, 4e6, 5
		for i, oneWay := range []time.Duration{10, 25, 50, 100, 150} {
			s.trips = append(s.trips, 2*oneWay*time.Millisecond)
			s.starts = append(s.starts, time.Duration(i)*10*second)
		}
		d.rtt = s.trips[0]
	case "5.6":
		d.duration, d.link, s.cubics, s.begin = 120*second, 2e6, 1, 5*second
	case "5.7":
		d.duration, d.link, s.receivers, s.shorts = 300*second, 2e6, 2, 10
		s.starts = []time.Duration{5 * second, 5 * second}
	case "5.8":
		d.duration, d.link, s.receivers = 120*second, 3.5e6, 3
		s.pause, s.resume = 40*second, 60*second
	default:
		return fmt.Errorf("%w: %q, expected rfc8867:5.1 to rfc8867:5.8", ErrCase, text)
	}
	if n := len(s.starts); n > 0 {
		s.measured += s.starts[n-1]
		s.least = s.starts[n-1] + second
	}
	s.least = max(s.least, s.resume)
	return nil
}

// steps returns a rate over time from pairs of a time in seconds and a rate in bit/s.
func steps(duration time.Duration, pairs ...float64) netem.RateTrace {
	trace := netem.RateTrace{Duration: duration}
	for i := 0; i < len(pairs); i += 2 {
		trace.Steps = append(trace.Steps, netem.RateStep{At: time.Duration(pairs[i] * float64(time.Second)),
			RateBPS: int(pairs[i+1])})
	}
	return trace
}

// evaluates reports whether the case is one of RFC 8867.
func (s *scenario) evaluates() bool { return strings.HasPrefix(s.name, "rfc8867:") }

// bidirectional reports whether the second receiver is at the other end of the path.
func (s *scenario) bidirectional() bool { return len(s.backward.Steps) > 0 }

// equal reports whether all receivers have the same share of one link if the sharing is fair.
func (s *scenario) equal() bool { return !s.bidirectional() && s.pause == s.resume }

// rateOf returns the rate of the bottleneck of a receiver.
func (s *scenario) rateOf(receiver int) *netem.RateTrace {
	if s.bidirectional() && receiver == 1 {
		return &s.backward
	}
	return &s.trace
}

// beginOf returns when a receiver begins.
func (s *scenario) beginOf(receiver int) time.Duration {
	if s.starts != nil {
		return s.starts[receiver]
	}
	return s.begin + time.Duration(receiver)*beginShift
}

// estimator returns the estimator of a receiver.
func (s *Simulation) estimator(receiver int, o *Options, begins time.Duration) congestion.Estimator {
	if o.NewEstimator == nil {
		return congestion.New(o.Estimator.Algorithm(o.Feedback == FeedbackCCFB), o.Estimator, at(begins))
	}
	trace := s.scenario.rateOf(receiver)
	return o.NewEstimator(EstimatorStart{Limits: o.Estimator.Limits(), Now: at(begins), RTT: o.RTT,
		Rate: func(now time.Time) float64 { return float64(trace.RateAt(max(now.Sub(epoch), 0))) }})
}

// crossReports makes the reports of two receivers pass the bottleneck of the other one.
func (s *Simulation) crossReports() {
	if !s.scenario.bidirectional() {
		return
	}
	for i, f := range s.flows {
		other := s.hops[1-i]
		f.receiver.back, f.receiver.flow = other.link, reportFlow+uint64(i)
		other.queue.watch(f.receiver.flow, func(time.Duration, time.Duration) {})
	}
}

// shortTransfers is a competitor with one Cubic transfer after another.
type shortTransfers struct {
	flow    uint64
	back    time.Duration
	random  *rand.Rand
	current *netem.CubicFlow // nil before the first
	bytes   float64          // of the current transfer
	done    bool             // the current transfer is complete
	begins  time.Duration    // of the next transfer
}

func newShortTransfers(flow uint64, back time.Duration, random *rand.Rand) *shortTransfers {
	return &shortTransfers{flow: flow, back: back, random: random, done: true,
		begins: time.Duration(random.ExpFloat64() * float64(shortPause))}
}

// Next implements competing.
func (t *shortTransfers) Next() time.Time {
	next := at(t.begins)
	if t.current == nil {
		return next
	}
	if own := t.current.Next(); !t.done || !own.IsZero() && own.Before(next) {
		return own
	}
	return next
}

// Step implements competing.
func (t *shortTransfers) Step(link *netem.Link, now time.Time) {
	if t.done && !now.Before(at(t.begins)) {
		t.current = netem.NewCubicFlow(t.flow, t.back, now)
		t.bytes, t.done = shortLeast+(shortMost-shortLeast)*t.random.Float64(), false
	}
	if t.current == nil {
		return
	}
	t.current.Step(link, now)
	if !t.done && float64(t.current.Stats().Acknowledged)*netem.SegmentBytes >= t.bytes {
		t.current.Stop()
		t.done = true
		pause := time.Duration(t.random.ExpFloat64() * float64(shortPause))
		t.begins = now.Sub(epoch) + max(pause, shortDrain)
	}
}

// Receive implements competing.
func (t *shortTransfers) Receive(p *netem.Packet) { t.current.Receive(p) }
