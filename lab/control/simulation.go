package control

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// sampleInterval is the length of three frames, so the rate sent in a sample varies by 3 % only.
	sampleInterval = 100 * time.Millisecond
	// settling is the time that a run continues without new frames, so packets in flight arrive or expire: the packets
	// that probes repeat for kept, and then the queues that delay them.
	settling = kept + 500*time.Millisecond
	// beginShift is the delay of each further receiver's beginning, a little over a third of a frame: frames of several
	// publishers are not captured at the same time.
	beginShift = 11 * time.Millisecond
)

// flow is one receiver and the traffic that the server sends to it.
type flow struct {
	id         uint64
	begins     time.Duration
	publisher  *publisher
	adaptation *adaptation
	server     *server
	receiver   *receiver
	back       *netem.Link
	ledger     *ledger
	watched    *watchedFlow
}

// competitor is a Cubic flow through the bottleneck.
type competitor struct {
	*netem.CubicFlow
	watched *watchedFlow
	delays  []delaySample
	samples []competitorSample
	last    totals
}

// competitorSample counts the packets of a competitor at the bottleneck's queue in one sampleInterval.
type competitorSample struct {
	at                 time.Duration // its end
	offered, discarded uint64
}

// delaySample is the waiting time of one packet.
type delaySample struct{ at, delay time.Duration }

// Simulation is one run of a case in virtual time.
type Simulation struct {
	scenario    *scenario
	now         time.Duration
	bottleneck  *netem.Link
	queue       *watchedQueue
	flows       []*flow
	competitors []*competitor
	sampled     time.Duration
}

// NewSimulation prepares a run of a case: steady:MBPS, ramp, drop, trace:FILE, cubic:N, fair:N or loss:PERCENT. The
// error wraps ErrCase or reports an invalid file or setting.
func NewSimulation(text string, o Options) (*Simulation, error) {
	sc, err := newScenario(text, o)
	if err != nil {
		return nil, err
	}
	queue, err := sc.queue()
	if err != nil {
		return nil, err
	}
	s := &Simulation{scenario: sc, queue: newWatchedQueue(queue)}
	forth := netem.Config{Delay: sc.options.RTT / 2, Loss: sc.loss}
	if s.bottleneck, err = netem.NewLink(forth, o.Seed, s.queue); err != nil {
		return nil, err
	}
	if err := s.bottleneck.SetRate(sc.trace, epoch); err != nil {
		return nil, err
	}
	for i := range sc.receivers {
		if err := s.addFlow(uint64(i+1), sc.begin+time.Duration(i)*beginShift); err != nil {
			return nil, err
		}
	}
	for i := range sc.cubics {
		s.addCompetitor(uint64(sc.receivers + i + 1))
	}
	return s, nil
}

func (s *Simulation) addFlow(id uint64, begins time.Duration) error {
	o := &s.scenario.options
	plan, err := o.Pacing.Plan()
	if err != nil {
		return err
	}
	back, err := netem.NewLink(netem.Config{Delay: o.RTT / 2, Loss: s.scenario.loss}, o.Seed^id<<32, nil)
	if err != nil {
		return err
	}
	f := &flow{id: id, begins: begins, back: back, ledger: newLedger()}
	f.publisher = newPublisher(ladderFor(congestion.Bitrate(s.scenario.trace.Max())), rand.New(rand.NewPCG(o.Seed, id)))
	f.publisher.next, f.publisher.planned = begins, begins
	f.server = newServer(id, o, congestion.New(s.scenario.algorithm, o.Estimator, at(begins)), plan, s.bottleneck, f.ledger,
		begins)
	if f.adaptation, err = newAdaptation(o, f.publisher, f.server, f.ledger); err != nil {
		return err
	}
	f.receiver = newReceiver(id, o, back, f.ledger)
	f.watched = s.queue.watch(id, f.ledger.waited)
	s.flows = append(s.flows, f)
	return nil
}

func (s *Simulation) addCompetitor(id uint64) {
	c := &competitor{CubicFlow: netem.NewCubicFlow(id, s.scenario.options.RTT/2, epoch)}
	c.watched = s.queue.watch(id, func(delay time.Duration) { c.delays = append(c.delays, delaySample{s.now, delay}) })
	s.competitors = append(s.competitors, c)
}

// Run runs the case to its end.
func (s *Simulation) Run(ctx context.Context) error {
	end := s.scenario.options.Duration + settling
	for s.now < end {
		s.now = max(s.now, min(s.next(), end))
		s.step()
		if s.now >= s.sampled+sampleInterval {
			s.sampled += sampleInterval
			if s.now < s.scenario.options.Duration+sampleInterval {
				s.sample()
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// next returns the time of the next event.
func (s *Simulation) next() time.Duration {
	next := min(s.sampled+sampleInterval, due(s.bottleneck.Next()))
	for _, f := range s.flows {
		next = min(next, due(f.back.Next()), f.server.next(), f.receiver.next())
		if s.capturing(f.publisher.next) {
			next = min(next, f.publisher.next)
		}
	}
	for _, c := range s.competitors {
		next = min(next, due(c.Next()))
	}
	return next
}

// due converts the time of a part's next step to virtual time; the zero time means never.
func due(t time.Time) time.Duration {
	if t.IsZero() {
		return never
	}
	return t.Sub(epoch)
}

func (s *Simulation) capturing(next time.Duration) bool { return next < s.scenario.options.Duration }

// step performs everything that is due.
func (s *Simulation) step() {
	now := at(s.now)
	for _, p := range s.bottleneck.Deliver(now) {
		if i := int(p.Flow) - 1; i < len(s.flows) {
			s.flows[i].receiver.take(p, s.now)
		} else {
			c := s.competitors[i-len(s.flows)]
			c.Receive(p)
		}
	}
	for _, f := range s.flows {
		for _, p := range f.back.Deliver(now) {
			f.server.rtcp(p.Payload, s.now)
		}
		if f.receiver.next() <= s.now {
			f.receiver.run(s.now)
		}
		if f.publisher.next <= s.now && s.capturing(f.publisher.next) {
			f.capture(s.now)
		}
		if f.server.next() <= s.now {
			f.server.run(s.now)
		}
	}
	for _, c := range s.competitors {
		if due(c.Next()) <= s.now {
			c.Step(s.bottleneck, now)
		}
	}
}

// capture makes a frame of all tiles, at the qualities of the current allocation.
func (f *flow) capture(now time.Duration) {
	number := f.publisher.capture()
	f.adaptation.decide(f.server.dropped, now)
	f.server.dropped = 0
	for tile, quality := range f.adaptation.qualities {
		if quality == volumetric.QualityOff {
			continue
		}
		bytes := f.publisher.size(tile, int(quality))
		source := (bytes + fragmentSize - 1) / fragmentSize
		parity := int(math.Ceil(f.adaptation.parity * float64(source)))
		f.server.frame(&outgoing{
			tile: int64(tile), number: number, captured: now, bytes: bytes, source: source, parity: parity,
			planned: source + parity,
		}, now)
	}
}

// sample ends an interval in every ledger.
func (s *Simulation) sample() {
	capacity := s.scenario.trace.Bits(s.now-sampleInterval, s.now) / sampleInterval.Seconds()
	for _, f := range s.flows {
		stats := f.server.Stats()
		f.ledger.sample(sample{
			at: s.now, capacity: capacity, estimate: float64(stats.Estimate), loss: stats.Loss,
			allocated: f.adaptation.allocated,
		}, f.watched, sampleInterval)
	}
	for _, c := range s.competitors {
		now := totals{offered: c.watched.offered, discarded: c.watched.discarded}
		c.samples = append(c.samples, competitorSample{s.now, now.offered - c.last.offered,
			now.discarded - c.last.discarded})
		c.last = now
	}
}
