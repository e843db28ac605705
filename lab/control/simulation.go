package control

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

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
	audio      *audio // nil without audio
}

// hop is a bottleneck. Every case has one, except for room.
type hop struct {
	link  *netem.Link
	queue *watchedQueue
}

// competing is an endless transfer: netem.CubicFlow or netem.PragueFlow.
type competing interface {
	Next() time.Time
	Step(link *netem.Link, now time.Time)
	Receive(p *netem.Packet)
}

// competitor is a Cubic or Prague flow through a bottleneck.
type competitor struct {
	competing
	hop     *hop
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
	hops        []*hop
	flows       []*flow
	competitors []*competitor
	sampled     time.Duration
	bleached    bool // the treatment of scenario.bleach has begun
}

// NewSimulation prepares a run of a case, one of those that the command lists. The error wraps ErrCase or reports an
// invalid file or setting.
func NewSimulation(text string, o Options) (*Simulation, error) {
	sc, err := newScenario(text, o)
	if err != nil {
		return nil, err
	}
	s := &Simulation{scenario: sc}
	for i := range sc.hops() {
		if err := s.addHop(o.Seed+uint64(i), sc.rateOf(i)); err != nil {
			return nil, err
		}
	}
	for i := range sc.receivers {
		if err := s.addFlow(uint64(i+1), s.hops[i%len(s.hops)], sc.beginOf(i)); err != nil {
			return nil, err
		}
	}
	s.join()
	s.crossReports()
	for i := range sc.cubics + sc.pragues + sc.shorts {
		s.addCompetitor(uint64(sc.receivers + i + 1))
	}
	if sc.options.Audio {
		s.addAudio()
	}
	return s, nil
}

// addHop adds a bottleneck with a rate.
func (s *Simulation) addHop(seed uint64, trace *netem.RateTrace) error {
	h := &hop{queue: newWatchedQueue(s.scenario.discipline.queue())}
	h.queue.packets = s.scenario.options.Packets
	var err error
	if h.link, err = netem.NewLink(s.scenario.forth(), seed, h.queue); err != nil {
		return err
	}
	s.hops = append(s.hops, h)
	return h.link.SetRate(*trace, epoch)
}

func (s *Simulation) addFlow(id uint64, h *hop, begins time.Duration) error {
	own := s.scenario.options
	o := &own
	if trips := s.scenario.trips; trips != nil {
		o.RTT = trips[id-1]
	}
	plan, err := o.Pacing.Plan()
	if err != nil {
		return err
	}
	forth := s.scenario.forth()
	back, err := netem.NewLink(netem.Config{Delay: o.RTT - forth.Delay, Loss: forth.Loss}, o.Seed^id<<32, nil)
	if err != nil {
		return err
	}
	f := &flow{id: id, begins: begins, back: back, ledger: newLedger()}
	if s.scenario.cliff {
		f.ledger.fall = s.scenario.fall
	}
	f.publisher = newPublisher(s.scenario.ladder(), rand.New(rand.NewPCG(o.Seed, id)))
	f.publisher.next, f.publisher.planned = begins, begins
	estimator := s.estimator(int(id-1), o, begins)
	f.server = newServer(id, o, estimator, plan, h.link, f.ledger, begins)
	if f.adaptation, err = newAdaptation(o, f.publisher, f.server, f.ledger); err != nil {
		return err
	}
	f.receiver = newReceiver(id, o, back, f.ledger)
	f.watched = h.queue.watch(id, f.ledger.waited)
	s.flows = append(s.flows, f)
	return nil
}

// addCompetitor adds a competitor at the first bottleneck.
func (s *Simulation) addCompetitor(id uint64) {
	sc, c := s.scenario, &competitor{hop: s.hops[0]}
	back, start := sc.options.RivalRTT-sc.forth().Delay, at(sc.rivals)
	switch {
	case sc.shorts > 0:
		c.competing = newShortTransfers(id, back, rand.New(rand.NewPCG(sc.options.Seed, id)))
	case sc.pragues > 0:
		c.competing = netem.NewPragueFlow(id, back, start)
	case sc.options.CubicECN:
		c.competing = netem.NewECNCubicFlow(id, back, start)
	default:
		c.competing = netem.NewCubicFlow(id, back, start)
	}
	c.watched = c.hop.queue.watch(id, func(delay, _ time.Duration) {
		c.delays = append(c.delays, delaySample{s.now, delay})
	})
	s.competitors = append(s.competitors, c)
}

// addAudio adds the audio of each receiver, as flows after those of competitors.
func (s *Simulation) addAudio() {
	for i, f := range s.flows {
		a := &audio{id: uint64(len(s.flows) + len(s.competitors) + i + 1), next: f.begins}
		s.hops[i%len(s.hops)].queue.watch(a.id, func(delay, _ time.Duration) { a.waited.Add(delay) })
		f.audio = a
	}
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
	next := s.sampled + sampleInterval
	if s.scenario.bleach != "" && !s.bleached {
		next = min(next, bleachAt)
	}
	for _, h := range s.hops {
		next = min(next, due(h.link.Next()))
	}
	for _, f := range s.flows {
		next = min(next, due(f.back.Next()), f.server.next(), f.receiver.next())
		if s.capturing(f.publisher.next) {
			next = min(next, f.publisher.next)
		}
		if f.audio != nil && s.capturing(f.audio.next) {
			next = min(next, f.audio.next)
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
	if s.scenario.bleach != "" && !s.bleached && s.now >= bleachAt {
		s.bleach()
	}
	for _, h := range s.hops {
		for _, p := range h.link.Deliver(now) {
			switch i := int(p.Flow) - 1; {
			case p.Flow >= reportFlow:
				s.flows[p.Flow-reportFlow].server.rtcp(p.Payload, s.now)
			case i < len(s.flows):
				s.flows[i].receiver.take(p, s.now)
			case i < len(s.flows)+len(s.competitors):
				c := s.competitors[i-len(s.flows)]
				c.Receive(p)
			}
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
			f.capture(s.now, s.scenario.pause, s.scenario.resume)
		}
		if f.audio != nil && f.audio.next <= s.now && s.capturing(f.audio.next) {
			f.audio.send(f.server.link, f.server.Stats().ECN, now)
		}
		if f.server.next() <= s.now {
			f.server.run(s.now)
		}
	}
	for _, c := range s.competitors {
		if due(c.Next()) <= s.now {
			c.Step(c.hop.link, now)
		}
	}
}

// bleach begins the treatment of the ECN field.
func (s *Simulation) bleach() {
	s.bleached = true
	forth := s.scenario.forth()
	forth.ECN = s.scenario.bleach
	for _, h := range s.hops {
		if err := h.link.Impair(forth, at(s.now)); err != nil {
			panic("control: parameters of a link were valid and are refused: " + err.Error())
		}
	}
}

// capture makes a frame of all tiles, at the qualities of the current allocation. The first receiver has none from
// pause to resume.
func (f *flow) capture(now, pause, resume time.Duration) {
	number := f.publisher.capture()
	if f.id == 1 && now >= pause && now < resume {
		return
	}
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
	for i, f := range s.flows {
		capacity := s.scenario.rateOf(i).Bits(s.now-sampleInterval, s.now) / sampleInterval.Seconds()
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
