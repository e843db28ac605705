package congestion

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

// between returns the samples of a time, sorted.
func between(samples []sample, from, to time.Duration) []time.Duration {
	var delays []time.Duration
	for _, s := range samples {
		if s.at >= from && s.at < to {
			delays = append(delays, s.delay)
		}
	}
	slices.Sort(delays)
	return delays
}

func quantileOf(delays []time.Duration, q float64) time.Duration {
	if len(delays) == 0 {
		return 0
	}
	return delays[int(q*float64(len(delays)-1))]
}

// least returns the minimum estimate of a time.
func (f *reliableFlow) least(from, to time.Duration) float64 {
	least := math.Inf(1)
	for _, e := range f.estimates {
		if e.at >= from && e.at < to {
			least = min(least, e.rate)
		}
	}
	return least
}

// usedUntil is the end of the evaluation of links, which starts at 10 s.
const usedUntil = 22 * time.Second

// use runs a flow for 22 s and returns the shares of the link that media took from 10 s on: in total, and in the worst
// second.
func (f *reliableFlow) use(rate float64) (share, worst float64) {
	const from, until = 10 * time.Second, usedUntil
	var seconds []int
	f.run(until, func(now time.Duration) {
		if now >= from && now%time.Second == 0 {
			seconds = append(seconds, f.media)
		}
	})
	worst = math.Inf(1)
	for i := range seconds {
		next := f.media
		if i+1 < len(seconds) {
			next = seconds[i+1]
		}
		worst = min(worst, float64(next-seconds[i])*8/rate)
	}
	return float64(f.media-seconds[0]) * 8 / (until - from).Seconds() / rate, worst
}

// TestReliableLinks compares the results of a sender by acknowledgements with the documented claims, after 10 s.
// Acknowledgements are up to 20 ms late each, and stall for 100 ms every other second.
func TestReliableLinks(t *testing.T) {
	for _, rate := range []float64{2, 10, 50} {
		for _, trip := range []time.Duration{20 * time.Millisecond, 100 * time.Millisecond} {
			for _, loss := range []float64{0, 0.001, 0.01} {
				if rate != 10 && loss == 0.001 {
					continue
				}
				// This loss ratio keeps the transport's window at its minimum, and acknowledgements arrive 40 ms after
				// the round trip.
				possible := 1.0
				if loss == 0.01 {
					possible = min(1, leastWindow*8/(trip+40*time.Millisecond).Seconds()/rate/mbit)
				}
				t.Run(fmt.Sprintf("%g Mbit per s, %v, loss of %g %%", rate, trip, 100*loss), func(t *testing.T) {
					t.Parallel()
					f := newReliableFlow(t, rate*mbit, trip, loss, 7)
					share, worst := f.use(rate * mbit)
					atLeast(t, "share of the link", share, 0.75*possible)
					atLeast(t, "share in the worst second", worst, 0.5*possible)
					atLeast(t, "least estimate, of the link", f.least(10*time.Second, usedUntil)/rate/mbit,
						0.5*possible)
					queue := between(f.waited, 10*time.Second, usedUntil)
					atMost(t, "p95 of the queue", quantileOf(queue, 0.95), 100*time.Millisecond)
					frames := between(f.latencies, 10*time.Second, usedUntil)
					t.Logf("queue p50 %v, frames' time p50 %v, p99 %v", quantileOf(queue, 0.5), quantileOf(frames, 0.5),
						quantileOf(frames, 0.99))
					// Lost packets take a round trip more.
					atMost(t, "p95 of a frame's time", quantileOf(frames, 0.95), 150*time.Millisecond+2*trip)
				})
			}
		}
	}
}

// TestReliableStart checks the time until a link is used.
func TestReliableStart(t *testing.T) {
	for _, trip := range []time.Duration{20 * time.Millisecond, 100 * time.Millisecond} {
		f := newReliableFlow(t, 50*mbit, trip, 0, 7)
		at := time.Duration(0)
		f.run(6*time.Second, func(now time.Duration) {
			if at == 0 && float64(f.estimator.Estimate()) >= 0.75*50*mbit {
				at = now
			}
		})
		if at == 0 {
			t.Fatalf("round trip of %v: the estimate never reached three quarters of the link", trip)
		}
		atMost(t, fmt.Sprintf("time to three quarters of the link at %v", trip), at, 4*time.Second)
	}
}

// TestReliableFall removes three quarters of a link's capacity after 10 s.
func TestReliableFall(t *testing.T) {
	const fall, until = 10 * time.Second, 20 * time.Second
	for _, rate := range []float64{10, 50} {
		for _, trip := range []time.Duration{20 * time.Millisecond, 100 * time.Millisecond} {
			t.Run(fmt.Sprintf("%g Mbit per s, %v", rate, trip), func(t *testing.T) {
				t.Parallel()
				f := newReliableFlow(t, rate*mbit, trip, 0, 7)
				left := rate / 4 * mbit
				f.run(until, func(now time.Duration) {
					if now == fall {
						f.narrow(now, left)
					}
				})
				followed := time.Duration(0)
				for _, e := range f.estimates {
					if e.at >= fall && e.rate > 1.1*left {
						followed = max(followed, e.at-fall)
					}
					if e.at >= fall+2*time.Second {
						break
					}
				}
				atMost(t, "time until the estimate is the link's", followed, 1900*time.Millisecond)
				atLeast(t, "least estimate after it, of the link", f.least(fall+time.Second, until)/left, 0.5)
				atMost(t, "p95 of the queue 3 s later", quantileOf(between(f.waited, fall+3*time.Second, until), 0.95),
					100*time.Millisecond)
			})
		}
	}
}

// TestReliableLimited has a sender that uses little, and then wants more: padding finds the capacity.
func TestReliableLimited(t *testing.T) {
	const want = 30 * mbit
	f := newReliableFlow(t, 50*mbit, 20*time.Millisecond, 0, 7)
	f.most = 3 * mbit
	f.estimator.Want(start, want)
	f.run(20*time.Second, nil)
	atLeast(t, "estimate of a link of 50 Mbit/s, in Mbit/s", float64(f.estimator.Estimate())/mbit, 0.9*want/mbit)
	g := newReliableFlow(t, 5*mbit, 20*time.Millisecond, 0, 7)
	g.most = 2 * mbit
	g.estimator.Want(start, want)
	g.run(20*time.Second, nil)
	atMost(t, "estimate of a link of 5 Mbit/s, in Mbit/s", float64(g.estimator.Estimate())/mbit, 8)
}

// TestReliableStandstill has a receiver that acknowledges nothing for some seconds, as a background tab does, and then
// everything at once.
func TestReliableStandstill(t *testing.T) {
	f := newReliableFlow(t, 10*mbit, 20*time.Millisecond, 0, 7)
	f.run(20*time.Second, func(now time.Duration) { f.stopped = now >= 10*time.Second && now < 13*time.Second })
	atLeast(t, "least estimate, of the link", f.least(10*time.Second, 20*time.Second)/(10*mbit), 0.5)
}

// TestReliableBusyHosts delays all acknowledgements by 60 ms more from some time on, although the path has no queue:
// the hosts have become busy.
func TestReliableBusyHosts(t *testing.T) {
	f := newReliableFlow(t, 50*mbit, 20*time.Millisecond, 0, 7)
	f.most = 10 * mbit
	f.run(30*time.Second, func(now time.Duration) {
		if f.busy = 0; now >= 10*time.Second {
			f.busy = 60 * time.Millisecond
		}
	})
	atLeast(t, "least estimate, in Mbit/s", f.least(10*time.Second, 30*time.Second)/mbit, 5)
	atLeast(t, "estimate in the end, in Mbit/s", float64(f.estimator.Estimate())/mbit, 10)
}

// TestReliableStarvedHosts delays acknowledgements by random times of up to 300 ms, as overloaded hosts do, in one case
// from the start.
func TestReliableStarvedHosts(t *testing.T) {
	f := newReliableFlow(t, 10*mbit, 20*time.Millisecond, 0, 7)
	share := 0
	f.run(40*time.Second, func(now time.Duration) {
		if now == 10*time.Second {
			f.jitter, f.stall, share = 300*time.Millisecond, 400*time.Millisecond, f.media
		}
	})
	atLeast(t, "least estimate, of the link", f.least(10*time.Second, 40*time.Second)/(10*mbit), 0.1)
	atLeast(t, "share of the link", float64(f.media-share)*8/30/(10*mbit), 0.4)
}
