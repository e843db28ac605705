package paths

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/netfn/trigger"
	"github.com/volsfu/volsfu/internal/netfn/wire"
)

const ms = time.Millisecond

// conditions are those of a path at a moment.
type conditions struct {
	rate      float64 // bit/s; 0 is unlimited
	low, high time.Duration
	tau       time.Duration // correlation time of the delay; 0: each packet has its own delay
	loss      float64
}

// emulated is one direction of a path: a queue of 100 ms at a rate, loss, and a delay that is uniform in a range.
type emulated struct {
	random *rand.Rand
	at     func(now time.Duration) conditions
	bottle *bottleneck
	state  float64 // of the AR(1) process, standard normal
	last   time.Duration
}

// bottleneck is a queue, which several paths may share.
type bottleneck struct{ idle time.Duration }

const (
	queueLimit = 100 * ms
	packetSize = 1200 // of the inner packet
	wireSize   = packetSize + 44
)

// send returns the arrival of a packet, and whether it arrives.
func (e *emulated) send(now time.Duration, size int) (time.Duration, bool) {
	c := e.at(now)
	left := now
	if c.rate > 0 {
		start := max(now, e.bottle.idle)
		if start-now > queueLimit {
			return 0, false
		}
		left = start + time.Duration(float64(size)*8/c.rate*float64(time.Second))
		e.bottle.idle = left
	}
	share := e.random.Float64()
	if c.tau > 0 {
		r := math.Exp(-float64(now-e.last) / float64(c.tau))
		e.state = r*e.state + math.Sqrt(1-r*r)*e.random.NormFloat64()
		e.last = now
		share = 0.5 * (1 + math.Erf(e.state/math.Sqrt2)) // uniform in (0, 1)
	}
	delay := c.low + time.Duration(share*float64(c.high-c.low))
	return left + delay, e.random.Float64() >= c.loss
}

// scenario describes a simulation.
type scenario struct {
	seed     uint64
	rate     float64 // of the flow, bit/s
	duration time.Duration
	deadline time.Duration
	paths    []func(now time.Duration) conditions
	shared   bool // one bottleneck for all paths
	fixed    Set  // the set, if not the selector's
	start    time.Duration
	reports  func(now time.Duration) bool // whether a report sent at now is not lost on all paths; nil: yes
}

// outcome has the figures of a simulation.
type outcome struct {
	changes []Change
	sets    []setAt
	packets []packetCount // by 10 ms
	frames  []frame
	probes  int
	sent    int
	lost    []time.Duration // send times of the packets of which no copy arrived
	delays  []arrival       // of first copies
	causes  map[trigger.Cause]int
}

type setAt struct {
	at  time.Duration
	set Set
}

type arrival struct{ sent, delay time.Duration }

type packetCount struct{ numbers, copies int }

type frame struct {
	created, complete time.Duration
	missing           int
}

// simulation is the pair with its paths, in virtual time.
type simulation struct {
	scenario
	random   *rand.Rand
	forward  []*emulated
	back     []*emulated
	events   events
	order    uint64
	observer *Observer
	selector *Selector
	trouble  *trigger.Trouble
	decision Decision
	number   uint32
	divisor  uint32 // of the sampling
	samples  int    // within this second
	outcome  outcome
	first    map[uint32]bool // numbers whose first copy has arrived
}

type event struct {
	at    time.Duration
	order uint64
	do    func(now time.Duration)
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// The clocks of the two hosts: the sender's has another origin, drifts by 20 ppm, and its stamps wrap within a minute.
func senderClock(now time.Duration) time.Duration {
	return (1<<32-30_000_000)*time.Microsecond + now + now/50_000
}

func receiverClock(now time.Duration) time.Duration { return 123*time.Second + now }

func stampOf(now time.Duration) uint32 { return uint32(senderClock(now) / time.Microsecond) }

// simulate runs a scenario.
func simulate(s scenario) *outcome {
	sim := &simulation{scenario: s, random: rand.New(rand.NewPCG(s.seed, 1)), first: make(map[uint32]bool),
		observer: NewObserver(0, s.deadline), trouble: trigger.NewTrouble(),
		selector: NewSelector(Config{Paths: len(s.paths), Deadline: s.deadline}), divisor: 1}
	var common bottleneck
	for i, at := range s.paths {
		for d, list := range []*[]*emulated{&sim.forward, &sim.back} {
			e := &emulated{random: rand.New(rand.NewPCG(s.seed, uint64(10+2*i+d))), at: at, bottle: &bottleneck{}}
			e.state = e.random.NormFloat64()
			if s.shared && d == 0 {
				e.bottle = &common
			}
			*list = append(*list, e)
		}
	}
	sim.outcome.causes = make(map[trigger.Cause]int)
	sim.outcome.packets = make([]packetCount, s.duration/(10*ms)+1)
	sim.decide(0)
	sim.schedule(0, sim.tick)
	sim.schedule(0, sim.frame)
	sim.schedule(0, sim.beat)
	sim.schedule(time.Second, sim.sample)
	for len(sim.events) > 0 {
		e := heap.Pop(&sim.events).(event)
		if e.at >= s.duration {
			break
		}
		e.do(e.at)
	}
	return &sim.outcome
}

// sample adapts the divisor of the sampling once per second to 1,000 to 4,000 samples/s, as an edge does.
func (s *simulation) sample(now time.Duration) {
	s.schedule(now+time.Second, s.sample)
	switch {
	case s.samples > 4000 && s.divisor < minProbeDivisor:
		s.divisor *= 2
	case s.samples < 1000 && s.divisor > 1:
		s.divisor /= 2
	}
	s.samples = 0
	s.observer.SetDivisor(s.divisor)
}

func (s *simulation) schedule(at time.Duration, do func(time.Duration)) {
	s.order++
	heap.Push(&s.events, event{at, s.order, do})
}

// frame sends a frame at 2.5 times the rate, and schedules the next one.
func (s *simulation) frame(now time.Duration) {
	s.schedule(now+time.Second/30, s.frame)
	size := s.rate / 8 / 30 * (0.9 + 0.2*s.random.Float64())
	packets := max(1, int(size/packetSize))
	index := len(s.outcome.frames)
	s.outcome.frames = append(s.outcome.frames, frame{created: now, missing: packets})
	gap := time.Duration(packetSize * 8 / (2.5 * s.rate) * float64(time.Second))
	for i := range packets {
		s.schedule(now+time.Duration(i)*gap, func(now time.Duration) { s.packet(now, index) })
	}
}

// packet sends one packet of a frame on the paths of the set. If no copy arrives, the packet is sent again 80 ms later,
// as a reliable transport would.
func (s *simulation) packet(now time.Duration, index int) {
	number := s.number
	s.number++
	set := s.decision.Set
	if number%s.decision.Divisor == 0 {
		set |= s.decision.Probes
		s.outcome.probes += s.decision.Probes.Len()
	}
	s.outcome.sent++
	count := &s.outcome.packets[now/(10*ms)]
	count.numbers++
	count.copies += set.Len()
	arrives := false
	for i, link := range s.forward {
		if !set.Has(i) {
			continue
		}
		at, ok := link.send(now, wireSize)
		if !ok {
			continue
		}
		arrives = true
		s.schedule(at, func(at time.Duration) { s.arrive(now, at, number, i, set, index) })
	}
	if !arrives {
		s.outcome.lost = append(s.outcome.lost, now)
		s.schedule(now+80*ms, func(now time.Duration) { s.packet(now, index) })
	}
}

func (s *simulation) arrive(sent, now time.Duration, number uint32, path int, set Set, index int) {
	if !s.first[number] {
		s.first[number] = true
		s.outcome.delays = append(s.outcome.delays, arrival{sent, now - sent})
		f := &s.outcome.frames[index]
		if f.missing--; f.missing == 0 {
			f.complete = now
		}
	}
	if number%s.divisor == 0 {
		s.samples++
		s.observer.Add(Sample{Flow: 1, Epoch: 7, Number: number, Path: uint8(path), Set: set, Sent: stampOf(sent),
			Arrived: receiverClock(now)})
		s.report(now)
	}
}

// report sends a report that is due on all paths. The sender applies its first copy; the others are old.
func (s *simulation) report(now time.Duration) {
	if !s.observer.Due(receiverClock(now)) {
		return
	}
	r := s.observer.Report(receiverClock(now))
	body, err := r.AppendBinary(nil)
	if err != nil {
		panic(fmt.Sprintf("the observer's report is invalid: %v", err))
	}
	for _, link := range s.back {
		at, ok := link.send(now, len(body)+60)
		if ok && (s.reports == nil || s.reports(now)) {
			s.schedule(at, func(now time.Duration) { s.apply(now, body) })
		}
	}
}

func (s *simulation) apply(now time.Duration, body []byte) {
	var r wire.Report
	if err := r.UnmarshalBinary(body); err != nil {
		panic(fmt.Sprintf("an encoded report is invalid: %v", err))
	}
	s.trouble.Apply(&r, senderClock(now))
	s.selector.Apply(&r, senderClock(now))
	s.decide(now)
}

// tick is the periodic work of both ends.
func (s *simulation) tick(now time.Duration) {
	s.schedule(now+5*ms, s.tick)
	if s.start > 0 && now >= s.start && now < s.start+5*ms {
		s.selector.Start(senderClock(now))
	}
	s.trouble.Sent(uint64(s.number), senderClock(now))
	s.decide(now)
	s.report(now)
}

// beat sends hellos on all paths.
func (s *simulation) beat(now time.Duration) {
	s.schedule(now+100*ms, s.beat)
	for i, link := range s.forward {
		if at, ok := link.send(now, 100); ok {
			s.schedule(at, func(at time.Duration) {
				s.observer.Beat(uint8(i), stampOf(now), receiverClock(at))
				s.report(at)
			})
		}
	}
}

// decide takes the decision of the selector.
func (s *simulation) decide(now time.Duration) {
	if cause := s.trouble.Step(senderClock(now)); cause != trigger.Nothing {
		s.outcome.causes[cause]++
		s.selector.Start(senderClock(now))
	}
	s.decision = s.selector.Step(senderClock(now))
	for _, c := range s.selector.Changes() {
		c.At = now
		s.outcome.changes = append(s.outcome.changes, c)
	}
	if s.fixed != 0 {
		s.decision = Decision{Set: s.fixed, Divisor: minProbeDivisor}
	}
	if n := len(s.outcome.sets); n == 0 || s.outcome.sets[n-1].set != s.decision.Set {
		s.outcome.sets = append(s.outcome.sets, setAt{now, s.decision.Set})
	}
}

// cost returns the copies per packet between two times, probes included.
func (o *outcome) cost(from, to time.Duration) float64 {
	var numbers, copies int
	for _, p := range o.packets[from/(10*ms) : to/(10*ms)] {
		numbers += p.numbers
		copies += p.copies
	}
	return float64(copies) / float64(numbers)
}

// inTime returns the share of the frames created between two times that were complete within a time.
func (o *outcome) inTime(from, to, limit time.Duration) float64 {
	var all, good int
	for _, f := range o.frames {
		if f.created >= from && f.created < to {
			all++
			if f.missing == 0 && f.complete-f.created <= limit {
				good++
			}
		}
	}
	return float64(good) / float64(all)
}

// worstSecond returns the least share of the frames created within a second that were complete within 150 ms.
func (o *outcome) worstSecond(from, to time.Duration) float64 {
	worst := 1.0
	for at := from; at+time.Second <= to; at += 100 * ms {
		worst = min(worst, o.inTime(at, at+time.Second, 150*ms))
	}
	return worst
}

// delay returns a percentile of the delays of first copies sent between two times.
func (o *outcome) delay(from, to time.Duration, percentile float64) time.Duration {
	var delays []time.Duration
	for _, a := range o.delays {
		if a.sent >= from && a.sent < to {
			delays = append(delays, a.delay)
		}
	}
	slices.Sort(delays)
	return delays[min(len(delays)-1, int(percentile*float64(len(delays))))]
}

// grown returns when the set first had at least two paths at or after a time.
func (o *outcome) grown(from time.Duration) (time.Duration, bool) {
	for i, s := range o.sets {
		until := time.Duration(math.MaxInt64)
		if i+1 < len(o.sets) {
			until = o.sets[i+1].at
		}
		if s.set.Len() > 1 && until > from {
			return max(s.at, from), true
		}
	}
	return 0, false
}

// troubled returns when the first packet at or after a time was sent that was later than a limit. A lost packet is no
// sign of trouble: the paths of table I lose 0.05 % in their quiet state as well.
func (o *outcome) troubled(from, limit time.Duration) time.Duration {
	first := time.Duration(math.MaxInt64)
	for _, a := range o.delays {
		if a.sent >= from && a.delay > limit {
			first = min(first, a.sent)
		}
	}
	return first
}

// started returns how often a trigger has added paths between two times.
func (o *outcome) started(from, to time.Duration) int {
	n := 0
	for _, c := range o.changes {
		if c.Reason == ReasonStarted && c.Joined && c.At >= from && c.At < to {
			n++
		}
	}
	return n
}

// joins returns when a path first joined the set at or after a time, or 0.
func (o *outcome) joins(path int, from time.Duration) time.Duration {
	for _, c := range o.changes {
		if c.Path == path && c.Joined && c.At >= from {
			return c.At
		}
	}
	return 0
}

// during returns how long a path was in the set between two times.
func (o *outcome) during(path int, from, to time.Duration) time.Duration {
	var sum time.Duration
	for i, s := range o.sets {
		until := to
		if i+1 < len(o.sets) {
			until = min(to, o.sets[i+1].at)
		}
		if s.set.Has(path) {
			sum += max(0, until-max(from, s.at))
		}
	}
	return sum
}

// story lists the sets with their times.
func (o *outcome) story() string {
	text := ""
	for _, s := range o.sets {
		text += fmt.Sprintf(" %.3f:%v", s.at.Seconds(), s.set)
	}
	for _, c := range o.changes {
		text += fmt.Sprintf("\n%.3f path %d joined %t, because %v", c.At.Seconds(), c.Path, c.Joined, c.Reason)
	}
	return fmt.Sprint(text, o.causes)
}
