package netem_test

import (
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/test/allocations"
	"github.com/volsfu/volsfu/test/race"
)

// endless is an endless transfer of either kind.
type endless interface {
	Next() time.Time
	Step(link *netem.Link, now time.Time)
	Receive(p *netem.Packet)
	Stop()
}

// acknowledged returns the number of acknowledged segments of a transfer.
func acknowledged(f endless) uint64 {
	if cubic, ok := f.(*netem.CubicFlow); ok {
		return cubic.Stats().Acknowledged
	}
	return f.(*netem.PragueFlow).Stats().Acknowledged
}

// bottleneck is a link shared by endless transfers. Flows have the numbers 1, 2 and so on.
type bottleneck struct {
	link    *netem.Link
	flows   []endless
	arrived func(p *netem.Packet) // sees every packet, if not nil
}

func newBottleneck(t testing.TB, cfg netem.Config) *bottleneck {
	return &bottleneck{link: newLink(t, cfg, 1)}
}

// add begins a Cubic transfer whose acknowledgements take back.
func (b *bottleneck) add(back time.Duration, start time.Duration) *netem.CubicFlow {
	f := netem.NewCubicFlow(b.number(), back, at(start))
	b.flows = append(b.flows, f)
	return f
}

// addPrague begins a Prague transfer whose acknowledgements take back.
func (b *bottleneck) addPrague(back time.Duration, start time.Duration) *netem.PragueFlow {
	f := netem.NewPragueFlow(b.number(), back, at(start))
	b.flows = append(b.flows, f)
	return f
}

// number returns the number of the next flow.
func (b *bottleneck) number() uint64 { return uint64(len(b.flows) + 1) }

// next returns the time of the next event, zero if there is none.
func (b *bottleneck) next() time.Time {
	next := b.link.Next()
	for _, f := range b.flows {
		if at := f.Next(); next.IsZero() || !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return next
}

// run processes all events up to end.
func (b *bottleneck) run(end time.Duration) {
	for next := b.next(); !next.IsZero() && !next.After(at(end)); next = b.next() {
		b.step(next)
	}
}

func (b *bottleneck) step(now time.Time) {
	for _, p := range b.link.Deliver(now) {
		if b.arrived != nil {
			b.arrived(p)
		}
		b.flows[p.Flow-1].Receive(p)
	}
	for _, f := range b.flows {
		f.Step(b.link, now)
	}
}

// measure returns the flows' rates from one time to another, in bit/s.
func (b *bottleneck) measure(from, to time.Duration) []float64 {
	b.run(from)
	var before []uint64
	for _, f := range b.flows {
		before = append(before, acknowledged(f))
	}
	b.run(to)
	var rates []float64
	for i, f := range b.flows {
		rates = append(rates, float64((acknowledged(f)-before[i])*netem.SegmentBytes*8)/(to-from).Seconds())
	}
	return rates
}

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

// jain returns Jain's fairness index: 1 if all rates are equal, 1/n if one flow has everything.
func jain(values []float64) float64 {
	var squares float64
	for _, v := range values {
		squares += v * v
	}
	return sum(values) * sum(values) / (float64(len(values)) * squares)
}

// dumbbell is a bottleneck with 10 ms of delay each way, whose queue holds the given number of bandwidth-delay
// products.
func dumbbell(rate int, discipline string, products float64) netem.Config {
	const rtt = 20 * time.Millisecond
	return with(func(c *netem.Config) {
		c.Delay, c.RateBPS, c.Queue = rtt/2, rate, discipline
		c.QueueBytes, c.QueueDelay = int(products*float64(rate)/8*rtt.Seconds()), 0
	})
}

func TestCubicAloneFillsTheLink(t *testing.T) {
	race.SkipSequential(t)
	cfg := dumbbell(200_000_000, netem.QueueFIFO, 1)
	b := newBottleneck(t, cfg)
	f := b.add(10*time.Millisecond, 0)
	utilisation := b.measure(0, 15*second)[0] / float64(cfg.RateBPS)
	s, link := f.Stats(), b.link.Stats()
	t.Logf("utilisation %.3f, %+v", utilisation, s)
	if utilisation < 0.95 {
		t.Errorf("utilisation %.3f of 200 Mbit/s over 15 s from the start, expected 0.95", utilisation)
	}
	if s.Lost > link.DroppedQueue || s.Lost < link.DroppedQueue-10 || s.Timeouts != 0 || s.Reductions < 2 ||
		s.Reductions > 20 {
		t.Errorf("%+v, expected the %d losses that the queue dropped, in few reductions without a timeout", s,
			link.DroppedQueue)
	}
}

// TestCubicFlowsShare starts flows one after another; each has its share soon.
func TestCubicFlowsShare(t *testing.T) {
	race.SkipSequential(t)
	for _, test := range []struct {
		discipline string
		flows      int
		from, to   time.Duration
		fair       float64 // Jain's index at least
	}{
		{netem.QueueFIFO, 2, 15 * second, 45 * second, 0.95}, {netem.QueueCoDel, 2, 10 * second, 30 * second, 0.98},
		{netem.QueueFQ, 3, 5 * second, 10 * second, 0.999}, {netem.QueueFQCoDel, 3, 5 * second, 10 * second, 0.999},
	} {
		cfg := dumbbell(50_000_000, test.discipline, 1)
		b := newBottleneck(t, cfg)
		for i := range test.flows {
			b.add(10*time.Millisecond, time.Duration(i)*second)
		}
		rates := b.measure(test.from, test.to)
		index, utilisation := jain(rates), sum(rates)/float64(cfg.RateBPS)
		t.Logf("%d flows under %s: Jain's index %.4f, utilisation %.3f", test.flows, test.discipline, index,
			utilisation)
		if index < test.fair || utilisation < 0.95 {
			t.Errorf("%d flows under %s: Jain's index %.4f, utilisation %.3f; expected %g and 0.95", test.flows,
				test.discipline, index, utilisation, test.fair)
		}
	}
}

func TestCubicFlowLivesThroughAnOutage(t *testing.T) {
	b := newBottleneck(t, dumbbell(100_000_000, netem.QueueFIFO, 1))
	setRate(t, b.link, netem.RateTrace{
		Steps: []netem.RateStep{{0, 100_000_000}, {5 * second, 0}, {8 * second, 100_000_000}}, Duration: 20 * second,
	}, epoch)
	f := b.add(10*time.Millisecond, 0)
	before, during, after := b.measure(second, 5*second)[0], b.measure(5100*time.Millisecond, 8*second)[0],
		b.measure(11*second, 15*second)[0]
	if before < 95e6 || during != 0 || after < 90e6 {
		t.Errorf("%.0f bit/s before, %.0f in and %.0f 3 s after an outage of 100 Mbit/s, expected 95e6, 0 and 90e6",
			before, during, after)
	}
	if s := f.Stats(); s.Timeouts == 0 {
		t.Errorf("%+v, expected timeouts in an outage of 3 s", s)
	}
}

func TestCubicFlowStops(t *testing.T) {
	b := newBottleneck(t, dumbbell(100_000_000, netem.QueueFIFO, 1))
	f := b.add(10*time.Millisecond, second)
	if next := b.next(); !next.Equal(at(second)) {
		t.Errorf("Next is %v before the start, expected 1s", next.Sub(epoch))
	}
	f.Step(b.link, epoch)
	if s := f.Stats(); s.Sent != 0 {
		t.Errorf("%d segments sent before the start", s.Sent)
	}
	b.run(2 * second)
	f.Stop()
	sent := f.Stats().Sent
	b.run(time.Hour)
	if s := f.Stats(); s.Sent != sent || s.Acknowledged+s.Lost > sent || !b.next().IsZero() {
		t.Errorf("%+v an hour later, expected no more than the %d segments sent, and nothing to come", s, sent)
	}
}

func TestCubicFlowDoesNotAllocate(t *testing.T) {
	b := newBottleneck(t, dumbbell(50_000_000, netem.QueueCoDel, 1))
	f := b.add(10*time.Millisecond, 0)
	b.run(5 * second)
	end, before := 5*second, f.Stats()
	n := allocations.PerCall(5, func() {
		end += second
		b.run(end)
	})
	s := f.Stats()
	// A packet dropped by a queue is left to the garbage collector, and allocated again.
	if limit := float64(s.Lost-before.Lost)/15 + 2; n > limit {
		t.Errorf("%g allocations per second with %d segments, expected at most %g", n,
			(s.Sent-before.Sent)/18, limit)
	}
}

// TestCubicSawtooth compares one flow on 10 Mbit/s with a round trip of 40 ms and a queue of one bandwidth-delay
// product with RFC 9438. The window falls to 0.7 of its maximum W and returns to W after K = ∛(0.3 W / C) (section
// 4.2), or sooner on the line of Reno (section 4.3). The time between two reductions is within a quarter of that.
func TestCubicSawtooth(t *testing.T) {
	race.SkipSequential(t)
	const rate, rtt = 10_000_000, 40 * time.Millisecond
	product := rate / 8 * rtt.Seconds()
	b := newBottleneck(t, with(func(c *netem.Config) {
		c.Delay, c.RateBPS, c.QueueBytes, c.QueueDelay = rtt/2, rate, int(product), 0
	}))
	f := b.add(rtt/2, 0)
	var reductions []time.Duration
	var highest float64
	last := f.Stats()
	for now := time.Duration(0); now < 120*second; now += 10 * time.Millisecond {
		b.run(now)
		s := f.Stats()
		if now > 20*second {
			highest = max(highest, s.Window)
			if s.Reductions > last.Reductions {
				reductions = append(reductions, now)
			}
		}
		last = s
	}
	utilisation := b.measure(120*second, 180*second)[0] / rate
	if len(reductions) < 3 {
		t.Fatalf("%d reductions in 100 s", len(reductions))
	}
	period := (reductions[len(reductions)-1] - reductions[0]).Seconds() / float64(len(reductions)-1)
	// Between the fall and the next loss the round trip is that of a queue between 0.4 and 1 product. Reno's line grows
	// by α = 3 (1-β)/(1+β) segments for each of them.
	cubic := math.Cbrt(0.3 * highest / 0.4)
	trip := rtt.Seconds() * (0.7*highest + highest) / 2 * netem.SegmentBytes / product
	reno := 0.3 * highest / (3 * 0.3 / 1.7) * trip
	want := min(cubic, reno)
	t.Logf("utilisation %.3f, %d reductions, period %.2f s, maximum %.0f segments, cubic %.2f s, Reno %.2f s",
		utilisation, len(reductions), period, highest, cubic, reno)
	if utilisation < 0.95 {
		t.Errorf("the utilisation is %.3f, expected 0.95 or more", utilisation)
	}
	if period < 0.75*want || period > 1.25*want {
		t.Errorf("a reduction follows after %.2f s, expected %.2f s within a quarter", period, want)
	}
}
