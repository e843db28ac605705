package congestion

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
)

// reporting sends a packet every 10 ms and reports all that left 40 ms ago or earlier, every 50 ms, from one time to
// another.
func (t *reportTimer) reporting(from, to time.Duration) {
	for now := from; now < to; now += 10 * time.Millisecond {
		t.sent(now)
		if now%(50*time.Millisecond) == 0 && now >= 100*time.Millisecond {
			t.reported(now, now-90*time.Millisecond, now-40*time.Millisecond)
		}
	}
}

// sending sends a packet every 10 ms without a report, from one time to another.
func (t *reportTimer) sending(from, to time.Duration) {
	for now := from; now < to; now += 10 * time.Millisecond {
		t.sent(now)
	}
}

// late reports whether a report is overdue.
func (t *reportTimer) late(now time.Duration) bool {
	t.step(now)
	return t.overdue
}

func TestReportTimer(t *testing.T) {
	timer := newReportTimer(500 * time.Millisecond)
	timer.sent(0)
	if timer.late(time.Hour) {
		t.Error("a report is overdue before the first one")
	}
	timer.reporting(0, 2*time.Second)
	timer.sending(2*time.Second, 2100*time.Millisecond)
	// The report at 1.95 s covers packets until 1.91 s. The wait is the age of 90 ms, four times 10 ms, and the
	// interval of 50 ms.
	if due, expected := timer.due(); !expected || (due-2100*time.Millisecond).Abs() > 5*time.Millisecond {
		t.Errorf("a report is due at %v, %v, expected 2.1 s", due, expected)
	}
	if timer.late(2090 * time.Millisecond) {
		t.Error("a report is overdue after less than the usual age, its variation, and an interval")
	}
	if !timer.late(2105 * time.Millisecond) {
		t.Error("no report is overdue at 2.105 s")
	}
	// A report about the first packets does not restart the wait for the others. The wait is now its limit.
	timer.sending(2100*time.Millisecond, 2550*time.Millisecond)
	timer.reported(2500*time.Millisecond, 1920*time.Millisecond, 1950*time.Millisecond)
	if !timer.late(2550 * time.Millisecond) {
		t.Error("a report about the first packets of an interruption ends the wait for the others")
	}
	timer.reported(2600*time.Millisecond, 1960*time.Millisecond, 2550*time.Millisecond)
	if timer.late(time.Hour) {
		t.Error("a report is overdue although all packets are reported")
	}
}

// TestReportTimerLimit reports packets that were in a queue for seconds: the wait stays below half a second beyond the
// usual age.
func TestReportTimerLimit(t *testing.T) {
	timer := newReportTimer(500 * time.Millisecond)
	timer.reporting(0, 2*time.Second)
	for now := 2 * time.Second; now < 10*time.Second; now += 200 * time.Millisecond {
		timer.sent(now)
		timer.reported(now, now-7*time.Second, now)
	}
	timer.sending(10*time.Second, 10590*time.Millisecond)
	if !timer.late(10*time.Second + 590*time.Millisecond) {
		due, _ := timer.due()
		t.Errorf("a report is overdue at %v, expected at most 590 ms after the packet", due)
	}
}

// TestLostReport loses a single report about frames at 30 per second, and then all reports. The round trip is 40 ms.
func TestLostReport(t *testing.T) {
	const trip, lost, ends = 40 * time.Millisecond, 10 * time.Second, 11 * time.Second
	for _, interval := range []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond} {
		timer := newReportTimer(500 * time.Millisecond)
		found := time.Duration(0)
		frame := func(at time.Duration) bool { return at%(33*time.Millisecond) == 0 }
		for now := time.Duration(0); found == 0 && now < 13*time.Second; now += time.Millisecond {
			if frame(now) {
				timer.sent(now)
			}
			if now%interval == 0 && now != lost && now < ends {
				oldest, newest := time.Duration(-1), time.Duration(0)
				for at := max(now-trip-interval+time.Millisecond, 0); at <= now-trip; at += time.Millisecond {
					if frame(at) && oldest < 0 {
						oldest = at
					}
					if frame(at) {
						newest = at
					}
				}
				if oldest >= 0 {
					timer.reported(now, oldest, newest)
				}
			}
			if timer.late(now) {
				found = now
			}
		}
		// The last report leaves an interval before the end, and the variation of the age is that of a frame interval.
		if least, most := ends+interval, ends+2*interval+150*time.Millisecond; found < least || found > most {
			t.Errorf("interval %v: a report is overdue at %v, expected from %v to %v", interval, found, least, most)
		}
	}
}

// TestLostTail loses the last packet before a pause: the receiver does not report it, and the frame after the pause
// must begin at once. Reports about that frame are expected again.
func TestLostTail(t *testing.T) {
	const pause = 200 * time.Millisecond
	timer := newReportTimer(500 * time.Millisecond)
	timer.reporting(0, 2*time.Second)
	timer.reported(2030*time.Millisecond, 1960*time.Millisecond, 1980*time.Millisecond)
	for now := 2 * time.Second; now < 4*time.Second; now += 10 * time.Millisecond {
		if timer.late(now) {
			t.Fatalf("a report is overdue at %v", now)
		}
		switch now % pause {
		case 0, 10 * time.Millisecond, 20 * time.Millisecond:
			timer.sent(now)
		case 60 * time.Millisecond:
			timer.reported(now, now-60*time.Millisecond, now-50*time.Millisecond)
		}
	}
	timer.sending(4*time.Second, 4500*time.Millisecond)
	if !timer.late(4500 * time.Millisecond) {
		t.Error("no report is overdue after half a second")
	}
	// Once a report is overdue, the pauses between single frames do not end the hold.
	if timer.sent(4900 * time.Millisecond); !timer.late(6 * time.Second) {
		t.Error("the hold ends without a report")
	}
}

// TestSettledTimer ends the wait, as the Sender does when no packet is in flight.
func TestSettledTimer(t *testing.T) {
	g := newGCC(startingAt(8e6), start)
	f := &feed{estimator: g}
	f.run(2*time.Second, time.Millisecond, nil)
	for range 200 {
		f.now += time.Millisecond
		g.Sent(start.Add(f.now), 1000)
	}
	g.Step(start.Add(f.now))
	if g.Stats().Window != heldWindow {
		t.Fatal("no report is overdue after 200 ms")
	}
	g.Settle(start.Add(f.now))
	if w := g.Stats().Window; w != 0 {
		t.Errorf("the window is %d after the wait has ended", w)
	}
	if due, expected := g.timer.due(); expected {
		t.Errorf("a report is expected at %v although the wait has ended", due)
	}
}

// TestSuspendedReports passes no reports on for two seconds, as in an outage of the first of two paths. The estimate
// stays, and packets still leave as ECT(1).
func TestSuspendedReports(t *testing.T) {
	for _, e := range []Estimator{newGCC(startingAt(8e6), start), newL4S(startingAt(8e6), start)} {
		f := &feed{estimator: e}
		mark := func(r *feedback.PacketResult) { r.SentECN, r.ECN = e.Stats().ECN, e.Stats().ECN }
		f.run(2*time.Second, time.Millisecond, mark)
		before := e.Stats()
		for ms := range 2000 {
			f.now += time.Millisecond
			e.Sent(start.Add(f.now), 1000)
			if ms%100 == 0 {
				e.(interface{ Settle(now time.Time) }).Settle(start.Add(f.now))
			}
			if next := e.Next(); !next.IsZero() && !next.After(start.Add(f.now)) {
				e.Step(start.Add(f.now))
			}
		}
		f.run(time.Second, time.Millisecond, mark)
		s := e.Stats()
		if s.Silences > 0 || s.Estimate < before.Estimate || s.ECN != before.ECN || s.L4S != before.L4S {
			t.Errorf("%d silences, the estimate is %v as %v in the state %v, expected %v as %v in the state %v",
				s.Silences, s.Estimate, s.ECN, s.L4S, before.Estimate, before.ECN, before.L4S)
		}
	}
}

// TestMoves sends on a path that is longer by 20 ms, and then on the first one again. The estimator that is told of it
// keeps the rates, and the other takes the longer path for a queue.
func TestMoves(t *testing.T) {
	type mover interface {
		Move(now time.Time, rate Bitrate)
	}
	for _, told := range []bool{true, false} {
		for _, e := range []Estimator{newGCC(startingAt(8e6), start), newL4S(startingAt(8e6), start)} {
			f := &feed{estimator: e}
			f.run(4*time.Second, time.Millisecond, func(r *feedback.PacketResult) {
				r.ECN, r.SentECN = ecn.ECT1, ecn.ECT1
			})
			least := e.Estimate()
			for _, longer := range []time.Duration{20 * time.Millisecond, 0} {
				if told {
					e.(mover).Move(start.Add(f.now), 8e6)
				}
				for range 20 {
					f.run(100*time.Millisecond, time.Millisecond, func(r *feedback.PacketResult) {
						r.Arrived += longer
						r.ECN, r.SentECN = ecn.ECT1, ecn.ECT1
					})
					least = min(least, e.Estimate())
				}
			}
			if kept := least >= 8e6; kept != told {
				t.Errorf("told of the path: %v, the least estimate is %v, expected 8 Mbit/s: %v", told, least, told)
			}
		}
	}
}

// TestHeldStates ends the reports of receivers with L4S: frames are held only if further packets cannot show that the
// path drops ECT.
func TestHeldStates(t *testing.T) {
	for reason := Bleached; reason < Fallbacks; reason++ {
		for _, falls := range []bool{false, true} {
			l := newL4S(startingAt(8e6), start)
			f := &feed{estimator: l}
			f.run(2*time.Second, time.Millisecond, func(r *feedback.PacketResult) {
				r.ECN, r.SentECN = ecn.ECT1, ecn.ECT1
			})
			if falls {
				l.ecn.fall(f.now, reason)
				l.fallBack(f.now, reason)
			}
			for range 200 {
				f.now += time.Millisecond
				l.Sent(start.Add(f.now), 1000)
			}
			if _, expected := l.timer.due(); expected != falls {
				t.Errorf("%v: a report is expected: %v in the state %v", reason, expected, l.ecn.state)
			}
			if next := l.Next(); falls && next.After(start.Add(f.now)) {
				t.Errorf("%v: the next step is in %v, expected now", reason, next.Sub(start.Add(f.now)))
			}
			l.Step(start.Add(f.now))
			want := 0
			if falls {
				want = heldWindow
			}
			if s := l.Stats(); s.Window != want {
				t.Errorf("%v: the window is %d in the state %v, expected %d", reason, s.Window, s.L4S, want)
			}
		}
	}
}

func TestDepartures(t *testing.T) {
	var d departures
	for _, at := range []time.Duration{5, 1000, 1010, 3000} {
		d.add(at * time.Millisecond)
	}
	for _, c := range []struct {
		after, want time.Duration
		known       bool
	}{{0, 1000, true}, {1000, 1010, true}, {1015, 3000, true}, {3000, 0, false}, {5000, 0, false}} {
		if got, known := d.after(c.after * time.Millisecond); got != c.want*time.Millisecond || known != c.known {
			t.Errorf("after %d ms: %v, %v", c.after, got, known)
		}
	}
	d.add(time.Hour)
	if got, known := d.after(0); got != time.Hour || !known {
		t.Errorf("after an hour: %v, %v", got, known)
	}
}

// TestHold sends to a receiver whose reports end: a frame must not begin before a silence is detected. The next report
// about all packets ends the hold.
func TestHold(t *testing.T) {
	g := newGCC(startingAt(8e6), start)
	f := &feed{estimator: g}
	f.run(2*time.Second, time.Millisecond, nil)
	if w := g.Stats().Window; w != 0 {
		t.Fatalf("the window is %d while reports arrive", w)
	}
	for range 200 {
		f.now += time.Millisecond
		g.Sent(start.Add(f.now), 1000)
	}
	if next := g.Next(); next.After(start.Add(f.now)) {
		t.Errorf("the next step is in %v, expected now", next.Sub(start.Add(f.now)))
	}
	g.Step(start.Add(f.now))
	if w := g.Stats().Window; w != heldWindow {
		t.Errorf("the window is %d after 200 ms without a report, expected %d", w, heldWindow)
	}
	if s := g.Stats(); s.Silences > 0 {
		t.Errorf("%d silences after 200 ms", s.Silences)
	}
	f.run(time.Second, time.Millisecond, nil)
	if w := g.Stats().Window; w != 0 {
		t.Errorf("the window is %d after new reports", w)
	}
}
