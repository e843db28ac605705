package congestion

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/race"
)

const mbit = 1e6

// newTestLink returns a link with a round trip of 20 ms and a queue of 200 ms.
func newTestLink(rate float64) *testLink {
	return &testLink{rate: rate, delay: 10 * time.Millisecond, queueMax: 200 * time.Millisecond,
		random: rand.New(rand.NewPCG(1, 2))}
}

func startingAt(rate Bitrate) Config {
	cfg := DefaultConfig()
	cfg.Start = rate
	return cfg
}

// atMost and the following functions check a figure and print it, so that `go test -v` prints the table.
func atMost[T ~int64 | ~float64](t *testing.T, what string, got, limit T) {
	t.Helper()
	t.Logf("%s: %v (at most %v)", what, got, limit)
	if got > limit {
		t.Errorf("%s is %v, expected at most %v", what, got, limit)
	}
}

func atLeast[T ~int64 | ~float64](t *testing.T, what string, got, limit T) {
	t.Helper()
	t.Logf("%s: %v (at least %v)", what, got, limit)
	if got < limit {
		t.Errorf("%s is %v, expected at least %v", what, got, limit)
	}
}

// TestLinks checks the share of a link that a sender gets, and the queueing times of its packets, after 10 s.
func TestLinks(t *testing.T) {
	race.SkipSequential(t)
	const feedbackSlow, feedbackFast = 50 * time.Millisecond, 25 * time.Millisecond
	for _, c := range []struct {
		name        string
		rate        float64
		feedback    time.Duration
		queue       time.Duration
		codel       bool
		utilisation float64
	}{
		{"1 Mbit/s", 1, feedbackSlow, 200 * time.Millisecond, false, 0.85},
		{"2 Mbit/s", 2, feedbackSlow, 200 * time.Millisecond, false, 0.85},
		{"2 Mbit/s, CoDel", 2, feedbackSlow, 200 * time.Millisecond, true, 0.85},
		{"10 Mbit/s", 10, feedbackSlow, 200 * time.Millisecond, false, 0.85},
		{"50 Mbit/s", 50, feedbackFast, 200 * time.Millisecond, false, 0.85},
		{"50 Mbit/s, CoDel", 50, feedbackFast, 200 * time.Millisecond, true, 0.85},
		// The queue of a frame sent at 2.5 times its rate exceeds 20 ms at the capacity, and 10 ms from 0.7 of the
		// capacity on, so that frames are sent evenly. Their delays then rise sooner than those of bursts between which
		// the queue empties, at 0.9 of the capacity.
		{"50 Mbit/s, queue of 20 ms", 50, feedbackFast, 20 * time.Millisecond, false, 0.80},
		{"50 Mbit/s, queue of 10 ms", 50, feedbackFast, 10 * time.Millisecond, false, 0.80},
		{"100 Mbit/s", 100, feedbackFast, 200 * time.Millisecond, false, 0.85},
		{"100 Mbit/s, slow feedback", 100, feedbackSlow, 200 * time.Millisecond, false, 0.85},
		{"300 Mbit/s", 300, feedbackFast, 200 * time.Millisecond, false, 0.85},
		{"500 Mbit/s", 500, feedbackFast, 200 * time.Millisecond, false, 0.85},
		{"1000 Mbit/s", 1000, feedbackFast, 200 * time.Millisecond, false, 0.85},
	} {
		t.Run(c.name, func(t *testing.T) {
			link := newTestLink(c.rate * mbit)
			link.queueMax = c.queue
			if c.codel {
				link.codel = &codel{}
			}
			f := newTestFlow(newGCC(DefaultConfig(), start), link, 7)
			f.feedback = c.feedback
			var delivered, dropped, served int
			until := 20 * time.Second
			switch {
			case c.rate > 300:
				until = 12 * time.Second // up to a million packets
			case c.rate > 100:
				until = 15 * time.Second // 330,000 packets
			}
			simulate(link, until, func(now time.Duration) {
				if now == 10*time.Second {
					delivered, dropped, served = link.delivered, link.dropped, len(link.delays)
				}
			}, f)
			used := float64(link.delivered-delivered) * 8 / (until - 10*time.Second).Seconds()
			atLeast(t, "utilisation", used/link.rate, c.utilisation)
			atMost(t, "p95 of the queue", link.quantile(10*time.Second, until, 0.95), 30*time.Millisecond)
			lost := link.dropped - dropped
			most := 0.01
			if c.codel {
				most = 0.06 // CoDel drops before the queue is full
			}
			atMost(t, "loss", float64(lost)/float64(len(link.delays)-served+lost), most)
		})
	}
}

// TestTraffic checks links that delay packets in batches, as radio links and busy hosts do, and other frame intervals.
func TestTraffic(t *testing.T) {
	race.SkipSequential(t)
	const ms = time.Millisecond
	for _, c := range []struct {
		name          string
		jitter, batch time.Duration
		frames        time.Duration // per second
		utilisation   float64
		queue         time.Duration
	}{
		{"jitter of 5 ms", 5 * ms, 0, 30, 0.85, 30 * ms},
		{"jitter of 20 ms", 20 * ms, 0, 30, 0.80, 30 * ms},
		{"delivery every 10 ms", 0, 10 * ms, 30, 0.85, 30 * ms},
		// With steps of 20 ms, probes of 15 and 40 ms are imprecise and overshoot.
		{"delivery every 20 ms", 0, 20 * ms, 30, 0.85, 80 * ms},
		{"90 frames per second", 0, 0, 90, 0.85, 30 * ms},
		// The queue of a frame alone is 40 ms at 15 per second, 60 ms at 10.
		{"15 frames per second", 0, 0, 15, 0.85, 50 * ms},
		{"10 frames per second", 0, 0, 10, 0.75, 60 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			link := newTestLink(50 * mbit)
			link.jitter, link.batch = c.jitter, c.batch
			f := newTestFlow(newGCC(DefaultConfig(), start), link, 7)
			f.interval = time.Second / c.frames
			delivered := 0
			simulate(link, 15*time.Second, func(now time.Duration) {
				if now == 5*time.Second {
					delivered = link.delivered
				}
			}, f)
			atLeast(t, "utilisation", float64(link.delivered-delivered)*8/10/link.rate, c.utilisation)
			atMost(t, "p95 of the queue", link.quantile(5*time.Second, 15*time.Second, 0.95), c.queue)
		})
	}
}

// TestRamp starts the profile on an idle link.
func TestRamp(t *testing.T) {
	link := newTestLink(100 * mbit)
	cfg := DefaultConfig()
	cfg.Profile = "paper000"
	f := newTestFlow(newGCC(cfg, start), link, 7)
	simulate(link, 6*time.Second, nil, f)
	at, ok := f.reaches(0, 90*mbit)
	if !ok {
		t.Fatal("the estimate never reached 90 Mbit/s")
	}
	atMost(t, "time to 90 Mbit/s", at, 3*time.Second)
	atMost(t, "packets dropped", float64(link.dropped), 0)
}

// TestCapacityFalls removes three quarters of a link's capacity after 10 s.
func TestCapacityFalls(t *testing.T) {
	const fall, until = 5 * time.Second, 11 * time.Second
	for _, queue := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, time.Second} {
		for _, interval := range []time.Duration{25 * time.Millisecond, 50 * time.Millisecond} {
			t.Run(fmt.Sprintf("queue of %v, feedback every %v", queue, interval), func(t *testing.T) {
				link := newTestLink(100 * mbit)
				link.queueMax = queue
				f := newTestFlow(newGCC(startingAt(30*mbit), start), link, 7)
				f.feedback = interval
				simulate(link, until, func(now time.Duration) {
					if now == fall {
						link.rate = 25 * mbit
					}
				}, f)
				last := link.exceeds(50 * time.Millisecond)
				atMost(t, "time until the queue stays below 50 ms", last-fall, 1500*time.Millisecond)
				back, ok := f.reaches(last, 0.8*25*mbit)
				if !ok {
					t.Fatal("the estimate never returned to 80 %")
				}
				atMost(t, "time until the estimate is back at 80 %", back-fall, 5*time.Second)
				least, _, _ := f.extremes(fall+5*time.Second, until)
				atLeast(t, "least estimate after 5 s", Bitrate(least), 0.8*25*mbit)
			})
		}
	}
}

// TestCollapse removes three quarters of a link's capacity, and restores them 10 s later. The queue is so short that it
// overflows with the third frame.
func TestCollapse(t *testing.T) {
	const fall, rise = 5 * time.Second, 15 * time.Second
	for _, seed := range []uint64{7, 8, 9} {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			link := newTestLink(100 * mbit)
			link.queueMax = 50 * time.Millisecond
			f := newTestFlow(newGCC(startingAt(30*mbit), start), link, seed)
			simulate(link, rise+5*time.Second, func(now time.Duration) {
				switch now {
				case fall:
					link.rate, link.queueMax = 25*mbit, 200*time.Millisecond
				case rise:
					link.rate, link.queueMax = 100*mbit, 50*time.Millisecond
				}
			}, f)
			noticed := time.Duration(-1)
			for _, e := range f.estimates {
				if e.at >= fall && e.rate <= 25*mbit {
					noticed = e.at - fall
					break
				}
			}
			if noticed < 0 {
				t.Fatal("the estimate never fell")
			}
			atMost(t, "time until the estimate is below the link", noticed, 80*time.Millisecond)
			back, ok := f.reaches(rise, 80*mbit)
			if !ok {
				t.Fatal("the estimate never returned to 80 Mbit/s")
			}
			atMost(t, "time until it is back", back-rise, 2*time.Second)
		})
	}
}

// TestStartAbove starts at a rate that fills the queue at once.
func TestStartAbove(t *testing.T) {
	for _, c := range []struct{ from, rate float64 }{{40, 25}, {40, 8}, {100, 80}} {
		t.Run(fmt.Sprintf("%v on %v Mbit/s", c.from, c.rate), func(t *testing.T) {
			link := newTestLink(c.rate * mbit)
			f := newTestFlow(newGCC(startingAt(Bitrate(c.from*mbit)), start), link, 7)
			delivered := 0
			simulate(link, 15*time.Second, func(now time.Duration) {
				if now == 5*time.Second {
					delivered = link.delivered
				}
			}, f)
			atLeast(t, "utilisation after 5 s", float64(link.delivered-delivered)*8/10/link.rate, 0.85)
			atMost(t, "p95 of the queue", link.quantile(5*time.Second, 15*time.Second, 0.95), 30*time.Millisecond)
		})
	}
}
