package control

import (
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/test/race"
)

// TestBesidePrague: a receiver with GCC and two Prague flows use the link. Competitors may have a round trip of their
// own.
func TestBesidePrague(t *testing.T) {
	for _, rtt := range []time.Duration{20 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond} {
		o := short(20)
		o.RTT, o.RivalRTT, o.Estimator.Controller = rtt, 25*time.Millisecond, congestion.ControllerGCC
		s := run(t, "prague:2", o)
		r := s.Record().Result()
		if shares := *r.ShareOfFair + 2**r.Others.ShareOfFair; shares < 2.7 || shares > 3.01 {
			t.Errorf("the three flows have %.2f fair shares, expected nearly 3", shares)
		}
		if r.LowLatency == nil || r.Classic == nil || r.LowLatency.P99 > 2 || r.LowLatency.Dropped > 0 {
			t.Errorf("figures of classes are %+v and %+v, want Prague's packets within 2 ms", r.LowLatency, r.Classic)
		}
		for _, c := range s.competitors {
			own := c.competing.(*netem.PragueFlow).Stats().RTT - o.RivalRTT
			if own < 0 || own > 10*time.Millisecond {
				t.Errorf("the round trip of a competitor is %v above that of its path", own)
			}
		}
		if own := s.flows[0].server.Stats().RTT - rtt; own < 0 || own > 60*time.Millisecond {
			t.Errorf("the round trip of the receiver is %v above that of its path", own)
		}
	}
}

// TestJoins: the receiver joins the competitors, or the competitors join the receiver, as in paper 000.
func TestJoins(t *testing.T) {
	for _, c := range []struct {
		queue, joins     string
		receiver, rivals time.Duration
	}{
		{"", "", besideBegin, 0}, {"", JoinRivals, 0, besideBegin}, {netem.QueuePaper000, "", 0, besideBegin},
		{netem.QueuePaper000, JoinReceiver, besideBegin, 0},
	} {
		o := short(7)
		o.Queue, o.Joins = c.queue, c.joins
		s := run(t, "prague:1", o)
		began := func(sent func(i int) bool) time.Duration {
			for i, x := range s.flows[0].ledger.samples {
				if sent(i) {
					return x.at.Truncate(time.Second)
				}
			}
			return never
		}
		receiver := began(func(i int) bool { return s.flows[0].ledger.samples[i].sent > 0 })
		rivals := began(func(i int) bool { return s.competitors[0].samples[i].offered > 0 })
		if receiver != c.receiver || rivals != c.rivals {
			t.Errorf("%+v: the receiver begins at %v, the competitor at %v", c, receiver, rivals)
		}
	}
}

// TestCubicECN: competing Cubic flows with classic ECN are marked by CoDel, and lose nothing after slow start.
func TestCubicECN(t *testing.T) {
	o := short(16)
	o.Queue, o.CubicECN, o.LinkBPS = "codel", true, 50e6
	s := run(t, "cubic:1", o)
	discarded := uint64(0)
	for _, x := range s.competitors[0].samples {
		if x.at > 2*time.Second {
			discarded += x.discarded
		}
	}
	if stats := s.competitors[0].competing.(*netem.CubicFlow).Stats(); stats.Marked == 0 || discarded > 0 {
		t.Errorf("%+v and %d losses after slow start, expected marks without a loss", stats, discarded)
	}
	if r := s.Record().Result(); r.Classic == nil || r.Classic.Marked == 0 {
		t.Errorf("figures of classic packets are %+v, expected marks", r.Classic)
	}
}

// TestBleach: each treatment begins at 10 s. The estimator falls back to Not-ECT with the first report that shows it.
func TestBleach(t *testing.T) {
	race.SkipSequential(t)
	for _, kind := range bleachKinds {
		t.Run(kind, func(t *testing.T) {
			o := short(14)
			o.LinkBPS, o.Feedback = 20e6, FeedbackCCFB
			s, err := NewSimulation("bleach:"+kind, o)
			if err != nil {
				t.Fatal(err)
			}
			f, e := s.flows[0], &capable{}
			e.Estimator = congestion.New(congestion.GCC, s.scenario.options.Estimator, epoch)
			e.fallen = func() bool {
				switch ct := &e.reported; kind {
				case netem.ECNClear:
					return ct[ecn.NotECT] > 0
				case netem.ECNECT0:
					return ct[ecn.ECT0] > 0
				case netem.ECNMark:
					// The queue itself marks as many in a row, at the start.
					return e.marksInARow > 100 && e.latest.After(at(bleachAt))
				}
				return false
			}
			f.server.Start(f.server.history, e, epoch)
			if err := s.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			r := s.Record().Result()
			stats := s.hops[0].link.Stats()
			if kind == netem.ECNDrop {
				if stats.DroppedECN == 0 || *r.FallbackSeconds != 4 || len(r.Codepoints) != 1 {
					t.Errorf("%d packets dropped, a fallback after %g s, codepoints %+v; expected drops to the end",
						stats.DroppedECN, *r.FallbackSeconds, r.Codepoints)
				}
				return
			}
			if stats.DroppedECN > 0 || *r.FallbackSeconds <= 0 || *r.FallbackSeconds > 0.5 {
				t.Errorf("%d packets dropped, a fallback after %g s, expected none and at most 0.5", stats.DroppedECN,
					*r.FallbackSeconds)
			}
			if want := []string{"ECT(1)", "Not-ECT"}; len(r.Codepoints) != 2 || r.Codepoints[0].Codepoint != want[0] ||
				r.Codepoints[1].Codepoint != want[1] || r.Codepoints[1].Seconds != 10+*r.FallbackSeconds {
				t.Errorf("codepoints are %+v, expected %v", r.Codepoints, want)
			}
		})
	}
}

// TestFallback covers codepoints that do not change, and packets that were not ECN-capable.
func TestFallback(t *testing.T) {
	l := newLedger()
	l.left(0, 0)
	if got := l.fallback(20 * time.Second); got != nil {
		t.Errorf("a fallback after %g s of packets that were Not-ECT", *got)
	}
	l.left(1, time.Second)
	if got := l.fallback(20 * time.Second); got == nil || *got != 10 {
		t.Error("expected the time to the end without a fallback")
	}
	l.left(0, 12*time.Second)
	l.left(1, 15*time.Second)
	if got := l.fallback(20 * time.Second); got == nil || *got != 2 {
		t.Error("expected the time to the first fallback, 2 s")
	}
}

// TestCliff: the rate falls to a fifth within 50 ms, and the figures are the longest time in the queue and the last
// long one.
func TestCliff(t *testing.T) {
	o := short(20)
	o.Estimator.Controller = congestion.ControllerGCC
	s := run(t, "cliff", o)
	fall := s.scenario.fall
	for at, want := range map[time.Duration]int{0: 100e6, fall - 1: 100e6, fall: 92e6, fall + 5*time.Millisecond: 84e6,
		fall + 45*time.Millisecond: 20e6, 19 * time.Second: 20e6} {
		if got := s.scenario.trace.RateAt(at); math.Abs(float64(got-want)) > 1 {
			t.Errorf("the rate is %d bit/s at %v, expected %d", got, at, want)
		}
	}
	// Even a sender that stops as soon as it learns of marks leaves 1.45 Mbit in the queue, 72 ms at 20 Mbit/s. GCC's
	// frames wait longer than 5 ms at that rate to the end of the run.
	if c := s.Record().Result().Cliff; c.LongestQueue < 72 || c.ShortAfter < 4.9 || c.ShortAfter > 5 {
		t.Errorf("%+v, expected a longest queue of 72 ms at least and a long queue to the end", c)
	}

	l := newLedger()
	l.fall = 10 * time.Second
	for _, d := range []delaySample{{9 * time.Second, 500}, {10*time.Second + 1, 30}, {10100 * time.Millisecond, 70},
		{10900 * time.Millisecond, 6}, {11 * time.Second, 4}, {13 * time.Second, 20}} {
		l.waited(d.delay*time.Millisecond, d.at)
	}
	if c := l.cliff(20 * time.Second); c.LongestQueue != 70 || c.ShortAfter != 0.9 {
		t.Errorf("%+v, expected 70 ms and 0.9 s", c)
	}
}

// TestRoom: a Prague flow on the first participant's uplink lowers that uplink's estimate. The other hops keep theirs,
// and the downlinks have equal rates.
func TestRoom(t *testing.T) {
	o := short(24)
	s := run(t, "room:3", o)
	r := s.Record().Result()
	if len(s.hops) != 6 || len(r.Room.Hops) != 6 || r.Room.Hops[0].Hop != "uplink 1" ||
		r.Room.Hops[5].Hop != "downlink 3" {
		t.Fatalf("%d hops, %+v; expected three uplinks and three downlinks", len(s.hops), r.Room.Hops)
	}
	if marked := r.Room.Hops[0]; marked.WhileMarks > 0.8*marked.Before || marked.Before < 70 {
		t.Errorf("the marked uplink has %+v, expected a fall from 70 or more by a fifth at least", marked)
	}
	if *r.JainIndex < 0.95 || r.Room.LargestChange > 0.15 {
		t.Errorf("Jain's index %.3f, estimates of others change by %.3f", *r.JainIndex, r.Room.LargestChange)
	}
	// The downlinks have the first participant's tiles in the qualities of the marked uplink.
	for i := range 2 {
		down, marked := s.flows[4+i].adaptation.qualities, s.flows[0].adaptation.qualities
		for tile := range tiles {
			if publisher := (1 + i + 1 + tile%2) % 3; publisher == 0 && down[tile] > marked[tile] {
				t.Errorf("downlink %d has qualities %v, the marked uplink %v", i+2, down, marked)
			}
		}
	}
}
