package congestion

import (
	"testing"
	"time"
	"unsafe"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
)

// feed sends packets to an estimator, one per gap, and reports each at once, after a round trip of 20 ms.
type feed struct {
	estimator Estimator
	now       time.Duration
	sequence  int64
	batch     []feedback.PacketResult
}

func newFeed(cfg Config) *feed { return &feed{estimator: newGCC(cfg, start)} }

// run continues for a time. change, if not nil, alters each result.
func (f *feed) run(d, gap time.Duration, change func(r *feedback.PacketResult)) {
	for end := f.now + d; f.now < end; {
		f.batch = f.batch[:0]
		for range 10 {
			f.sequence++
			r := feedback.PacketResult{Sequence: f.sequence, Size: 1000, Sent: start.Add(f.now),
				Arrived: time.Hour + f.now + 10*time.Millisecond, Received: true}
			f.estimator.Sent(r.Sent, r.Size)
			f.batch = append(f.batch, r)
			if change != nil {
				change(&f.batch[len(f.batch)-1])
			}
			f.now += gap
		}
		f.estimator.Report(start.Add(f.now+20*time.Millisecond), f.batch)
	}
}

func TestClockJump(t *testing.T) {
	for _, jump := range []time.Duration{time.Hour, -time.Hour} {
		f := newFeed(startingAt(8e6))
		f.run(2*time.Second, time.Millisecond, nil)
		before := f.estimator.Stats()
		f.run(2*time.Second, time.Millisecond, func(r *feedback.PacketResult) { r.Arrived += jump })
		after := f.estimator.Stats()
		if after.Overuses != before.Overuses || after.Estimate < before.Estimate ||
			after.QueueDelay > time.Millisecond {
			t.Errorf("jump of %v: %+v, before it %+v", jump, after, before)
		}
		if after.Acknowledged < 7.9e6 || after.Acknowledged > 8.1e6 {
			t.Errorf("jump of %v: acknowledged %v, expected 8 Mbit/s", jump, after.Acknowledged)
		}
	}
}

func TestReordering(t *testing.T) {
	f := newFeed(startingAt(8e6))
	n := 0
	f.run(5*time.Second, time.Millisecond, func(r *feedback.PacketResult) {
		if n++; n%7 == 0 {
			r.Arrived += 3 * time.Millisecond // after the two or three packets that were sent later
		}
	})
	if s := f.estimator.Stats(); s.Overuses != 0 || s.Estimate < 8e6 {
		t.Errorf("reordered packets: %+v", s)
	}
}

func TestCounts(t *testing.T) {
	f := newFeed(startingAt(8e6))
	var late []feedback.PacketResult
	f.run(time.Second, time.Millisecond, func(r *feedback.PacketResult) {
		switch r.Sequence % 10 {
		case 1:
			r.ECN = ecn.CE
		case 2:
			r.ECN = ecn.ECT1
		case 3:
			r.ECN = ecn.ECT0
		case 4:
			late = append(late, *r)
			late[len(late)-1].Late = true
			r.Received = false
		}
	})
	s := f.estimator.Stats()
	if s.Received != 900 || s.Lost != 100 || s.Congested != 100 || s.Capable != 200 {
		t.Errorf("received %d, lost %d, congested %d, capable %d", s.Received, s.Lost, s.Congested, s.Capable)
	}
	if s.Loss < 0.09 || s.Loss > 0.11 {
		t.Errorf("loss is %v, expected 0.1", s.Loss)
	}
	if rtt := s.RTT; rtt < 19*time.Millisecond || rtt > 22*time.Millisecond {
		t.Errorf("round trip is %v, expected 20 ms and the time between packets", rtt)
	}
	f.estimator.Report(start.Add(f.now+20*time.Millisecond), late[90:])
	if s = f.estimator.Stats(); s.Received != 910 || s.Lost != 90 {
		t.Errorf("after ten late ones received %d, lost %d", s.Received, s.Lost)
	}
}

func TestLimits(t *testing.T) {
	f := newFeed(startingAt(8e6))
	f.estimator.SetLimits(start, Limits{Min: 1e6, Start: 4e6, Max: 20e6})
	if got := f.estimator.Estimate(); got != 4e6 {
		t.Errorf("the first estimate is %v, expected the start rate", got)
	}
	f.run(time.Second, time.Millisecond, nil)
	f.estimator.SetLimits(start.Add(f.now), Limits{Min: 15e6, Start: 15e6, Max: 20e6})
	if got := f.estimator.Estimate(); got != 15e6 {
		t.Errorf("the estimate is %v, expected the new least one", got)
	}
	f.estimator.SetLimits(start.Add(f.now), Limits{Min: 1e6, Start: 1e6, Max: 3e6})
	if got := f.estimator.Estimate(); got != 3e6 {
		t.Errorf("the estimate is %v, expected the new largest one", got)
	}
	for c, ok := f.estimator.Probe(start.Add(f.now)); ok; c, ok = f.estimator.Probe(start.Add(f.now)) {
		if c.Rate > 3e6 {
			t.Errorf("a probe of %v, above the largest estimate", c.Rate)
		}
	}
}

func TestNext(t *testing.T) {
	g := newGCC(startingAt(8e6), start)
	if !g.Next().IsZero() {
		t.Errorf("nothing was sent, and %v is next", g.Next())
	}
	g.Sent(start, 1000)
	g.Step(g.Next())
	if _, ok := g.Probe(g.Next()); !ok {
		t.Error("no probe at the start")
	}
	// Without feedback steps continue, each later than the last, and the estimate falls to the minimum.
	now := start
	for range 100 {
		next := g.Next()
		if next.IsZero() || !next.After(now) {
			t.Fatalf("after %v comes %v", now.Sub(start), next)
		}
		now = next
		g.Step(now)
	}
	if g.Estimate() != 500e3 || g.Stats().Silences == 0 {
		t.Errorf("estimate %v after %d reductions, expected 500 kbit/s", g.Estimate(), g.Stats().Silences)
	}
}

func TestNoAllocations(t *testing.T) {
	for algorithm := GCC; algorithm <= Paper000; algorithm++ {
		f := &feed{estimator: New(algorithm, startingAt(8e6), start)}
		mark := func(r *feedback.PacketResult) {
			r.ECN, r.SentECN = ecn.ECT1, ecn.ECT1
			if r.Sequence%20 == 0 {
				r.ECN = ecn.CE
			}
		}
		f.run(time.Second, time.Millisecond, mark)
		if n := testing.AllocsPerRun(1000, func() { f.run(10*time.Millisecond, time.Millisecond, mark) }); n != 0 {
			t.Errorf("%T: %v allocations per report, expected none", f.estimator, n)
		}
	}
}

func TestSize(t *testing.T) {
	if size := unsafe.Sizeof(gcc{}); size > 7<<10 {
		t.Errorf("a GCC takes %d bytes, expected at most 7 KiB", size)
	}
	if size := unsafe.Sizeof(l4s{}); size > 8<<10 {
		t.Errorf("an L4S takes %d bytes, expected at most 8 KiB", size)
	}
	t.Logf("a GCC takes %d bytes, and %d per packet of the largest report", unsafe.Sizeof(gcc{}),
		unsafe.Sizeof(arrival{}))
}

// BenchmarkReport processes the reports of a receiver of 100 Mbit/s every 25 ms: 260 packets.
func BenchmarkReport(b *testing.B) {
	g := newGCC(startingAt(100e6), start)
	results := make([]feedback.PacketResult, 260)
	now, sequence := time.Duration(0), int64(0)
	b.ReportAllocs()
	for b.Loop() {
		for i := range results {
			sequence++
			sent := start.Add(now + time.Duration(i)*96*time.Microsecond)
			results[i] = feedback.PacketResult{Sequence: sequence, Size: 1200, Sent: sent,
				Arrived: now + time.Duration(i)*96*time.Microsecond, Received: true}
			g.Sent(sent, 1200)
		}
		now += 25 * time.Millisecond
		g.Report(start.Add(now+20*time.Millisecond), results)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(results)), "ns/packet")
}

// TestResultsOutOfOrder reports losses after packets that were sent later, as RFC 8888 does if these belong to other
// streams: each counts once, and so does a late packet.
func TestResultsOutOfOrder(t *testing.T) {
	g := newGCC(startingAt(8e6), start)
	var held, late []feedback.PacketResult
	now := time.Duration(0)
	for batch := range 200 {
		results := held
		held = nil
		for n := range 10 {
			r := feedback.PacketResult{Sequence: int64(10*batch + n + 1), Size: 1000, Sent: start.Add(now),
				Arrived: now + 10*time.Millisecond, Received: n != 4}
			g.Sent(r.Sent, r.Size)
			if now += time.Millisecond; r.Received {
				results = append(results, r)
				continue
			}
			held = append(held, r)
			r.Received, r.Late = true, true
			late = append(late, r)
		}
		g.Report(start.Add(now+20*time.Millisecond), results)
	}
	s := g.Stats()
	if s.Received != 1800 || s.Lost != 199 || s.Loss < 0.09 || s.Loss > 0.11 {
		t.Errorf("received %d, lost %d, a share of %v, expected 1800, 199 and a tenth", s.Received, s.Lost, s.Loss)
	}
	g.Report(start.Add(now+40*time.Millisecond), late[:10])
	if s = g.Stats(); s.Received != 1810 || s.Lost != 189 {
		t.Errorf("after ten late ones received %d, lost %d", s.Received, s.Lost)
	}
}

// TestATrendAfterAProbe: larger frames look like a growing queue until they have been as large for a while, and the
// queue that a probe left drains; a longer standing queue is overuse.
func TestATrendAfterAProbe(t *testing.T) {
	const trip, found = 20 * time.Millisecond, 90e6
	most := DefaultConfig().Delay.QueueMax
	for _, c := range []struct {
		name    string
		after   time.Duration
		queue   time.Duration
		reduces bool
	}{
		{"at once, and a queue as probes leave it", 100 * time.Millisecond, most, false},
		{"at once, and a longer queue stands", 100 * time.Millisecond, most + time.Millisecond, true},
		{"later", trip + settlingTime, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGCC(DefaultConfig(), start)
			g.rtt = trip
			g.rate.set(25e6)
			g.rate.probed(time.Second, found)
			g.detector.usage, g.queue.delay, g.queue.known = Overusing, c.queue, true
			g.react(time.Second+c.after, 0)
			if reduced := g.rate.rate < found; reduced != c.reduces {
				t.Errorf("the rate is %g bit/s after %g, expected that it is reduced: %v", g.rate.rate,
					found, c.reduces)
			}
		})
	}
}

func TestLongestTrip(t *testing.T) {
	const ms = time.Millisecond
	at := func(d time.Duration) time.Time { return start.Add(d) }
	arrived := func(sent, arrived time.Duration) feedback.PacketResult {
		return feedback.PacketResult{Sent: at(sent), Arrived: -time.Hour + arrived, Received: true}
	}
	for name, c := range map[string]struct {
		results []feedback.PacketResult
		want    time.Duration
	}{
		"none":           {nil, 0},
		"only lost ones": {[]feedback.PacketResult{{Sent: at(0)}}, 0},
		"one":            {[]feedback.PacketResult{arrived(60*ms, 0)}, 40 * ms},
		"one that waited for the last": {[]feedback.PacketResult{arrived(50*ms, 70*ms), arrived(60*ms, 90*ms)},
			40 * ms},
		"one that a queue held up": {[]feedback.PacketResult{arrived(0, 70*ms), arrived(60*ms, 90*ms)}, 80 * ms},
		"one that the next has overtaken": {[]feedback.PacketResult{arrived(0, 90*ms), arrived(60*ms, 70*ms)},
			100 * ms},
		"one that was sent afterwards": {[]feedback.PacketResult{arrived(160*ms, 0)}, 0},
	} {
		if got := LongestTrip(at(100*ms), c.results); got != c.want {
			t.Errorf("%s: the longest trip is %v, expected %v", name, got, c.want)
		}
	}
}
