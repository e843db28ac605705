package congestion

import (
	"fmt"
	"testing"
	"time"
)

// TestRandomLoss loses packets at any rate.
func TestRandomLoss(t *testing.T) {
	for _, c := range []struct{ rate, loss, mean, least float64 }{
		{2, 0.01, 0.8, 0.8}, {2, 0.05, 0.8, 0.8}, {2, 0.10, 0.8, 0.8},
		{10, 0.01, 0.8, 0.8}, {10, 0.05, 0.8, 0.8}, {10, 0.10, 0.8, 0.8},
		{50, 0.01, 0.8, 0.8}, {50, 0.05, 0.8, 0.8}, {50, 0.10, 0.8, 0.8},
	} {
		t.Run(fmt.Sprintf("%v Mbit/s, %v %%", c.rate, 100*c.loss), func(t *testing.T) {
			link := newTestLink(c.rate * mbit)
			link.loss = c.loss
			f := newTestFlow(newGCC(DefaultConfig(), start), link, 7)
			simulate(link, 15*time.Second, nil, f)
			least, mean, _ := f.extremes(5*time.Second, 15*time.Second)
			atLeast(t, "mean estimate over rate", mean/link.rate, c.mean)
			atLeast(t, "least estimate over rate", least/link.rate, c.least)
		})
	}
}

// TestHighLoss states the effect of losses beyond InherentMax: they count as congestion, and the rate is near the
// minimum.
func TestHighLoss(t *testing.T) {
	link := newTestLink(10 * mbit)
	link.loss = 0.2
	f := newTestFlow(newGCC(DefaultConfig(), start), link, 7)
	simulate(link, 20*time.Second, nil, f)
	_, mean, _ := f.extremes(10*time.Second, 20*time.Second)
	atMost(t, "mean estimate", Bitrate(mean), 1*mbit)
}

// TestOutage interrupts feedback, or all packets, for two seconds.
func TestOutage(t *testing.T) {
	for _, everything := range []bool{false, true} {
		t.Run(fmt.Sprintf("everything %v", everything), func(t *testing.T) {
			link := newTestLink(100 * mbit)
			f := newTestFlow(newGCC(startingAt(30*mbit), start), link, 7)
			during := 0.0
			simulate(link, 10*time.Second, func(now time.Duration) {
				switch now {
				case 5 * time.Second:
					f.deaf, link.cut = true, everything
				case 7 * time.Second:
					f.deaf, link.cut = false, false
					during = float64(f.estimator.Estimate())
				}
			}, f)
			_, before, _ := f.extremes(4*time.Second, 5*time.Second)
			atMost(t, "estimate at the end of it over that before", during/before, 0.3)
			back, ok := f.reaches(7*time.Second, 0.8*before)
			if !ok {
				t.Fatal("the estimate never returned to 80 %")
			}
			atMost(t, "time back to 80 % of the rate before", back-7*time.Second, 3*time.Second)
		})
	}
}

// TestRouteChange makes the path to the receiver longer.
func TestRouteChange(t *testing.T) {
	for _, delay := range []time.Duration{60 * time.Millisecond, 110 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) {
			link := newTestLink(100 * mbit)
			f := newTestFlow(newGCC(startingAt(30*mbit), start), link, 7)
			simulate(link, 15*time.Second, func(now time.Duration) {
				if now == 5*time.Second {
					link.delay = delay
				}
			}, f)
			least, _, _ := f.extremes(5*time.Second, 10*time.Second)
			atLeast(t, "least estimate", Bitrate(least), 30*mbit)
			_, mean, _ := f.extremes(10*time.Second, 15*time.Second)
			atLeast(t, "mean estimate from 5 s later on", Bitrate(mean), 80*mbit)
		})
	}
}

// TestRouteShorter makes the path to the receiver shorter, which no queue does.
func TestRouteShorter(t *testing.T) {
	link := newTestLink(100 * mbit)
	link.delay = 60 * time.Millisecond
	f := newTestFlow(newGCC(startingAt(30*mbit), start), link, 7)
	simulate(link, 10*time.Second, func(now time.Duration) {
		if now == 5*time.Second {
			link.delay = 10 * time.Millisecond
		}
	}, f)
	least, _, _ := f.extremes(5*time.Second, 10*time.Second)
	atLeast(t, "least estimate", Bitrate(least), 70*mbit)
}

// TestLossesOfAnotherPath overflows a short queue at the start, and the losses limit the estimate. One second later the
// path is three times as fast, and soon faster still, as for a phone that has found its next cell.
func TestLossesOfAnotherPath(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3, 4, 5, 6, 7, 8} {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			link := newTestLink(17 * mbit)
			link.queueMax = 5 * time.Millisecond
			f := newTestFlow(newGCC(startingAt(13*mbit), start), link, seed)
			simulate(link, 10*time.Second, func(now time.Duration) {
				switch now {
				case time.Second:
					link.rate = 45 * mbit
				case 2 * time.Second:
					link.rate = 70 * mbit
				}
			}, f)
			back, ok := f.reaches(time.Second, 35*mbit)
			if !ok {
				t.Fatal("the estimate never reached half of the path's capacity")
			}
			atMost(t, "time to half of the path's capacity", back-time.Second, 3*time.Second)
		})
	}
}

// TestAfterHighLoss loses nearly all packets for a minute. The estimate is then the minimum, and has to grow again
// after that, by a probe or without.
func TestAfterHighLoss(t *testing.T) {
	const over = 65 * time.Second
	for _, loss := range []float64{0.8, 0.95} {
		for _, probes := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v %%, probes %v", 100*loss, probes), func(t *testing.T) {
				link := newTestLink(10 * mbit)
				cfg := DefaultConfig()
				cfg.Probe.Enabled = probes
				f := newTestFlow(newGCC(cfg, start), link, 7)
				simulate(link, over+20*time.Second, func(now time.Duration) {
					switch now {
					case 5 * time.Second:
						link.loss = loss
					case over:
						link.loss = 0
					}
				}, f)
				_, during, _ := f.extremes(over-10*time.Second, over)
				atMost(t, "mean estimate at the end of it", Bitrate(during), Bitrate(0.6*mbit))
				back, ok := f.reaches(over, 1*mbit)
				if !ok {
					t.Fatal("the estimate never reached twice the minimum")
				}
				// Without probes the other estimate grows by 8 % per second, and needs 9 s to double. Losses permit
				// this after a second and three steps of 1.3, of 500 ms each.
				atMost(t, "time until the estimate is twice the least one", back-over, 10*time.Second)
			})
		}
	}
}
