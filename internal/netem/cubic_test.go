package netem_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
)

// pipe acknowledges the segments of a Cubic sender after a constant time, except the selected lost ones.
type pipe struct {
	sender  *netem.Cubic
	rtt     time.Duration
	now     time.Time
	lose    func(number uint64) bool
	pending []pipeSegment
}

type pipeSegment struct {
	number uint64
	at     time.Time
}

func newPipe(rtt time.Duration, lose func(number uint64) bool) *pipe {
	return &pipe{sender: netem.NewCubic(), rtt: rtt, now: epoch, lose: lose}
}

// send sends the segments that the window permits and returns their number.
func (p *pipe) send() (count int) {
	for {
		number, ok := p.sender.Send(p.now)
		if !ok {
			return count
		}
		count++
		if !p.lose(number) {
			p.pending = append(p.pending, pipeSegment{number, p.now.Add(p.rtt)})
		}
	}
}

// run steps the sender until end; each sees the state after every acknowledgement and every timeout.
func (p *pipe) run(end time.Duration, each func(elapsed time.Duration, s netem.CubicStats)) {
	p.send()
	for !p.now.After(at(end)) {
		next := p.sender.Next()
		if len(p.pending) > 0 && !p.pending[0].at.After(next) {
			next = p.pending[0].at
		}
		p.now = next
		for len(p.pending) > 0 && !p.pending[0].at.After(next) {
			p.sender.Acknowledge(p.pending[0].number, false, next)
			p.pending = p.pending[1:]
			each(p.now.Sub(epoch), p.sender.Stats())
		}
		p.sender.Expire(next)
		each(p.now.Sub(epoch), p.sender.Stats())
		p.send()
	}
}

func nothingLost(uint64) bool { return false }

func TestCubicSlowStart(t *testing.T) {
	p := newPipe(100*time.Millisecond, nothingLost)
	windows := map[time.Duration]float64{}
	p.run(450*time.Millisecond, func(elapsed time.Duration, s netem.CubicStats) { windows[elapsed] = s.Window })
	for i, expected := range []float64{20, 40, 80, 160} {
		if got := windows[time.Duration(i+1)*100*time.Millisecond]; got != expected {
			t.Errorf("window %g after %d round trips, expected %g", got, i+1, expected)
		}
	}
	if s := p.sender.Stats(); s.RTT != 100*time.Millisecond || s.Lost != 0 || s.Reductions != 0 {
		t.Errorf("%+v, expected a round trip of 100 ms and no loss", s)
	}
}

// TestCubicGrowth follows the window after a loss: the cubic function of RFC 9438, section 4.2, for long round trips,
// and Reno's line for short ones.
func TestCubicGrowth(t *testing.T) {
	const lost = 1500 // a segment sent in slow start
	t.Run("cubic", func(t *testing.T) {
		p := newPipe(100*time.Millisecond, func(number uint64) bool { return number == lost })
		var before, origin, largest float64
		var epoch, plateau time.Duration
		p.run(15*time.Second, func(elapsed time.Duration, s netem.CubicStats) {
			switch {
			case s.Reductions == 0:
				before = s.Window
				return
			case origin == 0:
				origin = s.Window
				// The loss is detected by the acknowledgement of the third later segment; growth begins one round trip
				// later.
				epoch = elapsed + p.rtt
				plateau = time.Duration(math.Cbrt(before*0.3/0.4) * float64(time.Second))
			case elapsed > epoch+p.rtt:
				// W_cubic is the target for one round trip ahead, and approached within one.
				x := (elapsed - epoch - plateau).Seconds()
				expected := 0.4*x*x*x + before
				largest = max(largest, math.Abs(s.Window/expected-1))
			}
		})
		if math.Abs(origin/before-0.7) > 0.001 {
			t.Errorf("window %g after a loss at %g, expected 0.7 of that", origin, before)
		}
		if end := at(15 * time.Second).Sub(at(epoch + plateau)); end < 2*time.Second {
			t.Fatalf("the plateau is reached at %v: the test does not see the window grow beyond it", epoch+plateau)
		}
		t.Logf("window %g before the loss, plateau after %v, largest deviation %.4f", before, plateau, largest)
		if largest > 0.01 {
			t.Errorf("the window deviates from the cubic function by %.4f of it, expected at most 1 %%", largest)
		}
	})
	t.Run("Reno", func(t *testing.T) {
		// 28 segments at 5 ms: K is 2.8 s for Cubic, but Reno needs (28 × 0.3) / 0.529 round trips, 79 ms, to reach the
		// former window, and grows by one per round trip from then on.
		p := newPipe(5*time.Millisecond, func(number uint64) bool { return number == 25 })
		windows := map[time.Duration]float64{}
		p.run(400*time.Millisecond, func(elapsed time.Duration, s netem.CubicStats) { windows[elapsed] = s.Window })
		early, late := windows[70*time.Millisecond]-windows[30*time.Millisecond],
			windows[400*time.Millisecond]-windows[200*time.Millisecond]
		if math.Abs(early-8*0.529) > 0.2 || math.Abs(late-40) > 1 {
			t.Errorf("the window grew by %.2f in 8 round trips below its former size and by %.2f in 40 above, "+
				"expected 4.24 and 40", early, late)
		}
	})
}

func TestCubicReducesOncePerRoundTrip(t *testing.T) {
	p := newPipe(50*time.Millisecond, func(number uint64) bool {
		return number >= 1000 && number < 1200 &&
			number%2 == 0 || number == 2500
	})
	var reductions []string
	var last netem.CubicStats
	p.run(3*time.Second, func(_ time.Duration, s netem.CubicStats) {
		if s.Reductions != last.Reductions {
			reductions = append(reductions, fmt.Sprintf("%.2f", s.Window/last.Window))
		}
		last = s
	})
	if expected := []string{"0.70", "0.70"}; !slices.Equal(reductions, expected) || last.Lost != 101 ||
		last.Timeouts != 0 {
		t.Errorf("reductions to %v of the window, %+v; expected %v for 101 losses in two round trips", reductions,
			last, expected)
	}
}

// TestCubicFastConvergence loses a segment before the window reaches its value at the previous loss: the plateau is
// then 0.85 of the window at the second loss.
func TestCubicFastConvergence(t *testing.T) {
	second := uint64(math.MaxUint64)
	p := newPipe(100*time.Millisecond, func(number uint64) bool { return number == 1500 || number == second })
	var before float64
	var reducedAt, plateau time.Duration
	p.run(20*time.Second, func(elapsed time.Duration, s netem.CubicStats) {
		if elapsed > 3*time.Second && second == math.MaxUint64 {
			second = s.Sent // numbers are counted from 0: the next segment
		}
		if s.Reductions == 1 {
			before, reducedAt = s.Window, elapsed
		}
		// The plateau is 0.85 W, K = cbrt((0.85 - 0.7) W / 0.4) after the growth begins.
		plateau = time.Duration(math.Cbrt(0.15*before/0.4)*float64(time.Second)) + reducedAt + p.rtt
		if s.Reductions == 2 && (elapsed-plateau).Abs() < p.rtt && math.Abs(s.Window/before-0.85) > 0.005 {
			t.Fatalf("the window is %.3f of that at the loss at its plateau, expected 0.85", s.Window/before)
		}
	})
	if s := p.sender.Stats(); s.Reductions != 2 || plateau > 18*time.Second {
		t.Errorf("%d reductions, a plateau at %v; expected two, and the plateau within the 20 s of the test",
			s.Reductions, plateau)
	}
}

func TestCubicTimeout(t *testing.T) {
	// 310 segments are sent by 200 ms. The last 10 of them are lost, and all of the 300 that their acknowledgements
	// permit at 250 ms. No acknowledgement arrives for 200 ms; twice a single segment is sent without an
	// acknowledgement, and the timeout doubles.
	p := newPipe(50*time.Millisecond, func(number uint64) bool { return number >= 300 && number < 612 })
	var timeouts []time.Duration
	windows := map[time.Duration]float64{}
	p.run(2200*time.Millisecond, func(elapsed time.Duration, s netem.CubicStats) {
		windows[elapsed] = s.Window
		if int(s.Timeouts) > len(timeouts) {
			timeouts = append(timeouts, elapsed)
		}
	})
	if expected := []time.Duration{450 * time.Millisecond, 850 * time.Millisecond,
		1650 * time.Millisecond}; !slices.Equal(timeouts, expected) {
		t.Errorf("timeouts at %v, expected %v", timeouts, expected)
	}
	// The third segment is acknowledged, and slow start ends at 0.7 of the window of 310.
	for i, expected := range []float64{1, 2, 4, 8, 16, 32, 64, 128, 217} {
		now := 1650*time.Millisecond + time.Duration(i)*50*time.Millisecond
		if got := windows[now]; math.Abs(got-expected) > 0.5 {
			t.Errorf("window %g at %v, expected %g", got, now, expected)
		}
	}
	if s := p.sender.Stats(); s.Lost != 312 || s.Reductions != 1 {
		t.Errorf("%+v, expected 312 lost and one reduction", s)
	}
}

func TestCubicIgnoresWhatCannotBe(t *testing.T) {
	c := netem.NewCubic()
	for range 5 {
		c.Send(epoch)
	}
	c.Expire(epoch)
	for _, number := range []uint64{5, math.MaxUint64, 0, 0} {
		c.Acknowledge(number, false, at(time.Millisecond))
	}
	if s := c.Stats(); s.Acknowledged != 1 || s.Window != 11 {
		t.Errorf("%+v, expected one segment acknowledged", s)
	}
	// 2 overtakes 1, which is then not lost: that takes three later segments.
	for _, number := range []uint64{3, 2, 1} {
		c.Acknowledge(number, false, at(time.Millisecond))
	}
	if s := c.Stats(); s.Acknowledged != 4 || s.Lost != 0 {
		t.Errorf("%+v, expected four segments acknowledged and none lost", s)
	}
	c.Expire(at(time.Hour))
	c.Acknowledge(4, false, at(time.Hour))
	if s := c.Stats(); s.Acknowledged != 4 || s.Lost != 1 {
		t.Errorf("%+v, expected one segment lost, whatever comes later", s)
	}
}
