package congestion

import (
	"testing"
	"time"
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

func TestReportTimer(t *testing.T) {
	timer := newReportTimer(500 * time.Millisecond)
	timer.sent(0)
	if timer.overdue(time.Hour) {
		t.Error("a report is overdue before the first one")
	}
	timer.reporting(0, 2*time.Second)
	// The report at 1.95 s covers packets until 1.91 s. The wait is the age of 90 ms and four times 10 ms.
	if timer.overdue(2049 * time.Millisecond) {
		t.Error("a report is overdue after less than the usual age and its variation")
	}
	if !timer.overdue(2050 * time.Millisecond) {
		due, expected := timer.due()
		t.Errorf("no report is overdue at 2.05 s, but at %v, %v", due, expected)
	}
	// A report about the first packets does not restart the wait for the others. The wait is now its limit.
	timer.reported(2500*time.Millisecond, 1920*time.Millisecond, 1950*time.Millisecond)
	if !timer.overdue(2550 * time.Millisecond) {
		t.Error("a report about the first packets of an interruption ends the wait for the others")
	}
	timer.reported(2600*time.Millisecond, 1960*time.Millisecond, 2*time.Second)
	if timer.overdue(time.Hour) {
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
	timer.sent(10 * time.Second)
	if !timer.overdue(10*time.Second + 590*time.Millisecond) {
		due, _ := timer.due()
		t.Errorf("a report is overdue at %v, expected at most 590 ms after the packet", due)
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
