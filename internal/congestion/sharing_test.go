package congestion

import (
	"fmt"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/race"
)

// TestLimitedSender sends a third of the estimate.
func TestLimitedSender(t *testing.T) {
	run := func(cfg Config, want Bitrate) *testFlow {
		f := newTestFlow(newGCC(cfg, start), newTestLink(100*mbit), 7)
		f.share = 1.0 / 3
		if want > 0 {
			f.estimator.Want(start, want)
		}
		simulate(f.link, 20*time.Second, nil, f)
		return f
	}
	t.Run("with probes", func(t *testing.T) {
		f := run(startingAt(12.5*mbit), 0)
		least, _, most := f.extremes(time.Second, 20*time.Second)
		atLeast(t, "least estimate", Bitrate(least), 80*mbit)
		atMost(t, "largest estimate", Bitrate(most), 100*mbit)
		atMost(t, "packets dropped", float64(f.link.dropped), 0)
		if !f.estimator.Stats().ApplicationLimited {
			t.Error("the sender does not count as application-limited")
		}
	})
	t.Run("without", func(t *testing.T) {
		cfg := startingAt(12.5 * mbit)
		cfg.Probe.Enabled = false
		least, _, most := run(cfg, 0).extremes(time.Second, 20*time.Second)
		atLeast(t, "least estimate", Bitrate(least), 10*mbit)
		atMost(t, "largest estimate", Bitrate(most), 12.6*mbit)
	})
	t.Run("little wanted, with room for short frames", func(t *testing.T) {
		cfg := startingAt(2 * mbit)
		f := run(cfg, 5*mbit)
		at, ok := f.reaches(0, 70*mbit)
		if !ok {
			t.Fatal("the estimate never reached fourteen times the wanted rate")
		}
		atMost(t, "time to that", at, 10*time.Second)
		_, _, most := f.extremes(0, 20*time.Second)
		atMost(t, "largest estimate", Bitrate(most), 90*mbit)
		atMost(t, "packets dropped", float64(f.link.dropped), 0)
	})
	t.Run("little wanted, and no more", func(t *testing.T) {
		cfg := startingAt(30 * mbit)
		cfg.Probe.Ample = 1
		f := run(cfg, 20*mbit)
		// Of the two clusters at the start the second has six times the start rate; after that there are no probes.
		atMost(t, "probes", float64(f.estimator.Stats().Probes), 3)
	})
}

// TestStepUp raises the wanted rate of a sender that uses all of its wanted rate.
func TestStepUp(t *testing.T) {
	link := newTestLink(20 * mbit)
	f := newTestFlow(newGCC(startingAt(10*mbit), start), link, 7)
	f.estimator.Want(start, 10*mbit)
	simulate(link, 20*time.Second, func(now time.Duration) {
		switch now {
		case 5 * time.Second:
			link.rate = 100 * mbit
		case 10 * time.Second:
			f.estimator.Want(start.Add(now), 80*mbit)
		}
	}, f)
	at, ok := f.reaches(10*time.Second, 80*mbit)
	if !ok {
		t.Fatal("the estimate never reached 80 Mbit/s")
	}
	atMost(t, "time from 20 to 80 Mbit/s", at-10*time.Second, 6*time.Second)
}

// TestFairness has two senders at one bottleneck, started together or 10 s apart, and compares their rates 30 to 40 s
// after the second start. Single runs differ: at 50 Mbit/s and more a sender that starts at 2 Mbit/s beside one that
// has the whole link has not always converged after 30 s.
func TestFairness(t *testing.T) {
	race.SkipSequential(t)
	for _, c := range []struct {
		rate  float64
		late  time.Duration
		seeds uint64
		least float64
	}{{10, 0, 4, 0.9}, {10, 10 * time.Second, 4, 0.9}, {50, 10 * time.Second, 3, 0.8}} {
		t.Run(fmt.Sprintf("%v Mbit/s, %v later", c.rate, c.late), func(t *testing.T) {
			mean := 0.0
			for seed := range c.seeds {
				x, y, _ := rivalry(c.rate*mbit, c.late, seed)
				jain := (x + y) * (x + y) / 2 / (x*x + y*y)
				atLeast(t, fmt.Sprintf("Jain's index (%.1f and %.1f Mbit/s)", x/mbit, y/mbit), jain, c.least)
				mean += jain / float64(c.seeds)
			}
			atLeast(t, "mean of Jain's index", mean, 0.95)
		})
	}
}

// rivalry returns the delivered rates of two senders, and the link.
func rivalry(rate float64, late time.Duration, seed uint64) (float64, float64, *testLink) {
	link := newTestLink(rate)
	first := newTestFlow(newGCC(DefaultConfig(), start), link, 7+seed)
	second := newTestFlow(newGCC(DefaultConfig(), start.Add(late)), link, 99+seed)
	second.begins = late + time.Duration(seed)*7*time.Millisecond
	var x, y int
	simulate(link, late+40*time.Second, func(now time.Duration) {
		if now == late+30*time.Second {
			x, y = first.bytes, second.bytes
		}
	}, first, second)
	return float64(first.bytes-x) * 8 / 10, float64(second.bytes-y) * 8 / 10, link
}
