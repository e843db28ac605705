package clock

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

var start = time.Unix(1_800_000_000, 0)

// world contains two hosts and the path between them. The other clock is ahead by offset and
// drifts. Messages take the delays up and down plus a random wait.
type world struct {
	offset   time.Duration
	drift    float64
	up, down time.Duration
	// wait is the mean of the exponential waits in each direction.
	wait   time.Duration
	random *rand.Rand
}

// other converts a local time, which is the true time, to the other host's clock.
func (w *world) other(t time.Time) time.Time {
	return t.Add(w.offset + time.Duration(w.drift*float64(t.Sub(start)))).Round(time.Microsecond)
}

func (w *world) waits() time.Duration { return time.Duration(w.random.ExpFloat64() * float64(w.wait)) }

func TestShortestRoundTrip(t *testing.T) {
	var e Estimator
	if got := e.Shortest(); got != 0 {
		t.Errorf("%v before the first round trip, expected 0", got)
	}
	for i, times := range [][2]time.Duration{{10, 30}, {20, 5}, {40, 40}} {
		up, down := times[0]*time.Millisecond, times[1]*time.Millisecond
		begin := start.Add(time.Duration(i) * time.Second)
		read := begin.Add(up + time.Hour)
		back := begin.Add(up + down + time.Millisecond)
		if err := e.RoundTrip(begin, read, read.Add(time.Millisecond), back); err != nil {
			t.Fatal(err)
		}
	}
	if got := e.Shortest(); got != 15*time.Millisecond {
		t.Errorf("%v, expected 15 ms: the quickest message of each direction", got)
	}
}

// exchange makes a round trip that begins at the given local time.
func (w *world) exchange(t *testing.T, e *Estimator, begin time.Time) {
	t.Helper()
	begin = begin.Round(time.Microsecond)
	read := begin.Add(w.up + w.waits())
	answered := read.Add(50*time.Microsecond + w.waits())
	back := answered.Add(w.down + w.waits())
	if err := e.RoundTrip(begin, w.other(read), w.other(answered), back); err != nil {
		t.Fatal(err)
	}
}

// TestSymmetric expects an error below 100 µs, also in Uncertainty, on a symmetric link of 1 ms for
// any offset, with drift and waits.
func TestSymmetric(t *testing.T) {
	for _, offset := range []time.Duration{0, 50 * time.Millisecond, -50 * time.Millisecond, time.Hour} {
		for _, drift := range []float64{0, 40e-6, -100e-6} {
			w := &world{
				offset: offset,
				drift:  drift,
				up:     time.Millisecond,
				down:   time.Millisecond,
				wait:   60 * time.Microsecond,
				random: rand.New(rand.NewPCG(1, 2)),
			}
			var e Estimator
			for i := range 90 {
				now := start.Add(time.Duration(i) * 2 * time.Second)
				w.exchange(t, &e, now)
				if i < 15 {
					continue
				}
				// Read just before the next round trip.
				now = now.Add(1990 * time.Millisecond)
				got, ok := e.Estimate(now)
				miss := got.Offset - w.other(now).Sub(now)
				if !ok || max(miss, -miss) > 100*time.Microsecond || max(miss, -miss) > got.Bound {
					t.Fatalf(
						"offset %v, drift %g, after %d round trips: off by %v, bound %v, %v",
						offset,
						drift,
						i+1,
						miss,
						got.Bound,
						ok,
					)
				}
				if got.Uncertainty > 100*time.Microsecond {
					t.Fatalf(
						"offset %v, drift %g, after %d round trips: uncertain by %v, expected at most 100 µs",
						offset,
						drift,
						i+1,
						got.Uncertainty,
					)
				}
				if got.Bound > 1300*time.Microsecond {
					t.Fatalf("the bound is %v, expected about half of the round trip of 2 ms", got.Bound)
				}
			}
		}
	}
}

// TestAsymmetric expects that Bound covers the unknown division of the travelling time.
func TestAsymmetric(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		w := &world{
			offset: time.Duration(random.NormFloat64() * float64(time.Second)), drift: random.NormFloat64() * 30e-6,
			up: time.Duration(
				random.IntN(20_000),
			) * time.Microsecond, down: time.Duration(random.IntN(20_000)) * time.Microsecond,
			wait: time.Duration(1+random.IntN(5000)) * time.Microsecond, random: random,
		}
		var e Estimator
		for i := range 40 {
			now := start.Add(time.Duration(i) * 2 * time.Second)
			w.exchange(t, &e, now)
			now = now.Add(time.Second)
			got, ok := e.Estimate(now)
			miss := got.Offset - w.other(now).Sub(now)
			if !ok || max(miss, -miss) > got.Bound {
				t.Fatalf(
					"up %v, down %v, wait %v, drift %g, after %d: off by %v, bound %v",
					w.up,
					w.down,
					w.wait,
					w.drift,
					i+1,
					miss,
					got.Bound,
				)
			}
		}
	}
}

// TestOneWay expects that media messages contribute, and that messages quicker than signalling
// round trips narrow the bound.
func TestOneWay(t *testing.T) {
	w := &world{
		offset: -7 * time.Millisecond,
		up:     3 * time.Millisecond,
		down:   3 * time.Millisecond,
		wait:   time.Millisecond,
		random: rand.New(rand.NewPCG(5, 6)),
	}
	var e Estimator
	for i := range 20 {
		w.exchange(t, &e, start.Add(time.Duration(i)*2*time.Second))
	}
	now := start.Add(40 * time.Second)
	before, _ := e.Estimate(now)
	for i := range 10 {
		sent := now.Add(time.Duration(i) * time.Millisecond)
		e.Sent(sent, w.other(sent.Add(time.Millisecond)))
		e.Received(w.other(sent), sent.Add(time.Millisecond))
	}
	after, _ := e.Estimate(now)
	miss := after.Offset - w.offset
	if after.Bound >= before.Bound || after.Bound > 1100*time.Microsecond || max(miss, -miss) > after.Bound {
		t.Errorf(
			"the bound was %v and is %v, off by %v; expected that of a millisecond each way",
			before.Bound,
			after.Bound,
			miss,
		)
	}
}

// TestSet expects that a clock that was set is detected with the next round trip.
func TestSet(t *testing.T) {
	w := &world{
		offset: time.Second,
		up:     time.Millisecond,
		down:   time.Millisecond,
		wait:   10 * time.Microsecond,
		random: rand.New(rand.NewPCG(7, 8)),
	}
	var e Estimator
	for i := range 30 {
		w.exchange(t, &e, start.Add(time.Duration(i)*2*time.Second))
	}
	w.offset = -time.Second
	now := start.Add(time.Minute)
	w.exchange(t, &e, now)
	if got, ok := e.Estimate(now); !ok || got.Offset > -999*time.Millisecond || got.Bound > 2*time.Millisecond {
		t.Errorf("the offset is %v within %v, %v, expected -1 s", got.Offset, got.Bound, ok)
	}
	e.Sent(now, now.Add(-3*time.Second))
	e.Received(now.Add(-3*time.Second), now)
	if got, ok := e.Estimate(now); !ok || got.Offset != -3*time.Second {
		t.Errorf("the offset is %v, %v, expected -3 s by the newest messages", got.Offset, ok)
	}
	e.Received(now.Add(3*time.Second), now)
	if got, ok := e.Estimate(now); ok {
		t.Errorf("the offset is %v, expected none after a contradiction by one direction", got.Offset)
	}
}

func TestDrift(t *testing.T) {
	w := &world{
		drift:  80e-6,
		up:     4 * time.Millisecond,
		down:   time.Millisecond,
		wait:   20 * time.Microsecond,
		random: rand.New(rand.NewPCG(9, 10)),
	}
	var e Estimator
	for i := range 60 {
		w.exchange(t, &e, start.Add(time.Duration(i)*2*time.Second))
	}
	if got, _ := e.Estimate(start.Add(2 * time.Minute)); got.Drift < 78e-6 || got.Drift > 82e-6 {
		t.Errorf("the drift is %g, expected 80e-6 though the path is asymmetric", got.Drift)
	}
}

func TestRefuses(t *testing.T) {
	var e Estimator
	if _, ok := e.Estimate(start); ok {
		t.Error("something is known before the first round trip")
	}
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	for _, times := range [][4]time.Time{
		{at(5), at(0), at(0), at(0)},
		{at(0), at(5), at(0), at(10)},
		{at(0), at(0), at(20), at(10)},
	} {
		if err := e.RoundTrip(times[0], times[1], times[2], times[3]); !errors.Is(err, ErrTimes) {
			t.Errorf("%v: error is %v, expected ErrTimes", times, err)
		}
	}
	e.Sent(at(0), at(1))
	if _, ok := e.Estimate(start); ok {
		t.Error("one direction says where the clock is")
	}
}

// FuzzEstimator expects a finite estimate and a bound of at least 0 for any answers of a server.
func FuzzEstimator(f *testing.F) {
	f.Add(int64(0), int64(1000), int64(2000), int64(3000), int64(-5000))
	f.Add(int64(1<<62), int64(-1<<62), int64(1<<62), int64(1<<62), int64(1<<62))
	f.Fuzz(func(t *testing.T, t0, t1, t2, t3, later int64) {
		var e Estimator
		at := func(us int64) time.Time { return time.UnixMicro(us % (1 << 50)) }
		_ = e.RoundTrip(at(t0), at(t1), at(t2), at(t3))
		e.Sent(at(t1), at(t2))
		e.Received(at(t2), at(t1))
		_ = e.RoundTrip(at(t0), at(t0), at(t0), at(t3))
		if got, ok := e.Estimate(at(later)); ok && (got.Bound < 0 || got.Uncertainty > got.Bound) {
			t.Errorf("the estimate is %+v", got)
		}
	})
}
