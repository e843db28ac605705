package pacing

import (
	"math/rand/v2"
	"testing"
	"time"
)

// windowPath is a path that reports every packet a round trip after it has left.
type windowPath struct {
	*path
	trip time.Duration
	// reports are the times at which the first packets of out were reported. bypassed is the number of bytes in flight
	// of other packets.
	reports  []time.Duration
	bypassed int
	// silent is set while no report arrives.
	silent bool
}

func newWindowPath(t testing.TB, mode Mode, flows int, known Path) *windowPath {
	p := &windowPath{path: newPath(t, mode, flows), trip: 20 * ms}
	p.budget = time.Second / 30
	p.pacer.SetPath(known, 0)
	return p
}

func (p *windowPath) flight() int { return (len(p.out)-len(p.reports))*p.bytes + p.bypassed }

// until advances the time. The pacer learns of every packet that leaves and of every report.
func (p *windowPath) until(at time.Duration) {
	for p.now < at {
		end := at
		if next, ok := p.pacer.Next(); ok {
			end = min(end, next)
		}
		if len(p.reports) < len(p.out) && !p.silent {
			end = min(end, p.out[len(p.reports)].left+p.trip)
		}
		p.now = max(p.now, end)
		for !p.silent && len(p.reports) < len(p.out) && p.out[len(p.reports)].left+p.trip <= p.now {
			p.reports = append(p.reports, p.now)
		}
		p.pacer.SetInFlight(p.flight())
		if next, ok := p.pacer.Next(); !ok || next > p.now {
			continue
		}
		p.pacer.Tick(p.now)
		for {
			packet, ok := p.pacer.Pop(p.now)
			if !ok {
				break
			}
			p.leave(packet)
			p.pacer.SetInFlight(p.flight())
		}
	}
}

// offer offers a frame of a flow, all at once.
func (p *windowPath) offer(flow int, frame int64, packets int) {
	for i := range packets {
		before := len(p.out)
		p.arrive(flow, framed(frame, i, packets))
		if len(p.out) > before {
			p.pacer.SetInFlight(p.flight())
		}
	}
}

// TestWindow has frames of 10 packets at 96 Mbit/s, at which a packet takes 0.1 ms, and a round trip of 20 ms.
func TestWindow(t *testing.T) {
	smooth := Path{Estimate: 96_000_000, Smooth: true}
	usual := Path{Estimate: 96_000_000}
	for _, test := range []struct {
		name   string
		mode   Mode
		known  Path
		window int // packets
		run    func(p *windowPath)
		want   string
	}{
		{"a frame that fits", Default, smooth, 40, func(p *windowPath) { p.offer(0, 1, 10) }, `
			a0: 100ms to 101ms`},
		// The first packets of a0 are reported after 20 ms, and b0 needs all of them.
		{"the next frame waits for reports", Default, smooth, 12, func(p *windowPath) {
			p.offer(0, 1, 10)
			p.offer(1, 1, 10)
		}, `
			a0: 100ms to 101ms
			b0: 121ms to 121ms`},
		{"in the usual mode, too", "spread:1ms", usual, 12, func(p *windowPath) {
			p.offer(0, 1, 10)
			p.offer(1, 1, 10)
		}, `
			a0: 100ms to 100ms
			b0: 120ms to 120ms`},
		// Five packets of a0 and b0 must be reported, although only one of each has left at first.
		{"frames that have begun count as a whole", "spread:20ms", usual, 25, func(p *windowPath) {
			p.offer(0, 1, 10)
			p.offer(1, 1, 10)
			p.offer(2, 1, 10)
		}, `
			a0: 100ms to 118ms
			b0: 100ms to 118ms
			c0: 124ms to 124ms`},
		// The two packets of the third flow would fit beside a0.
		{"frames begin in turn", Default, smooth, 14, func(p *windowPath) {
			p.offer(0, 1, 10)
			p.offer(1, 1, 10)
			p.offer(2, 1, 2)
			p.until(130 * ms)
			if n := len(p.out); n != 22 || p.out[20].flow != 2 {
				t.Errorf("%d packets left, expected the last 2 of 22 to be of the third flow", n)
			}
		}, `
			a0: 100ms to 101ms
			b0: 120ms to 121ms`},
		{"a frame beyond the window begins alone", Default, smooth, 8, func(p *windowPath) {
			p.offer(0, 1, 10)
			p.offer(1, 1, 10)
		}, `
			a0: 100ms to 101ms
			b0: 121ms to 121ms`},
		{"audio in flight does not stop such a frame", Default, smooth, 8, func(p *windowPath) {
			p.bypassed = 1000
			p.pacer.SetInFlight(1000)
			p.offer(0, 1, 10)
		}, `
			a0: 100ms to 101ms`},
		// After a frame interval the second frame is dropped.
		{"a frame that waits for too long is dropped whole", Default, smooth, 12, func(p *windowPath) {
			p.silent = true
			p.offer(0, 1, 10)
			p.offer(1, 1, 10)
			p.until(150 * ms)
			if p.dropped != 1 || p.pacer.Held() != 0 {
				t.Errorf("%d frames are dropped, %d packets wait", p.dropped, p.pacer.Held())
			}
		}, `
			a0: 100ms to 101ms`},
		{"without reports a frame begins after a pause", "spread:1ms", usual, 12, func(p *windowPath) {
			p.silent = true
			for frame := range int64(9) {
				p.until(100*ms + time.Duration(frame)*30*ms)
				p.offer(0, frame, 10)
			}
		}, `
			a0: 100ms to 100ms
			a6: 300ms to 300ms`},
	} {
		t.Run(test.name, func(t *testing.T) {
			known := test.known
			p := newWindowPath(t, test.mode, 3, known)
			known.Window = test.window * p.bytes
			p.pacer.SetPath(known, 0)
			p.until(100 * ms)
			test.run(p)
			p.until(time.Second)
			if got := p.frames(10); got != lines(test.want) {
				t.Errorf("frames left\n%s, expected\n%s", got, lines(test.want))
			}
		})
	}
}

// TestRandomWindows sends frames of random sizes with random windows, reports and pauses, on smooth paths and others.
// A frame begins only if it fits beside the bytes in flight, or alone after a pause. No flow starves, and time
// advances: a pacer that asks for a tick has something to do.
func TestRandomWindows(t *testing.T) {
	const interval = time.Second / 30
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 23))
		known := Path{Estimate: 50_000_000, Smooth: seed%2 == 0, ApplicationLimited: seed%3 == 0}
		p := newWindowPath(t, []Mode{Default, "spread:5ms", Burst5ms}[seed%3], 3, known)
		p.trip = time.Duration(5+random.IntN(60)) * ms
		known.Window = 150_000
		p.pacer.SetPath(known, 0)
		for frame := range int64(60) {
			p.silent = frame > 20 && frame < 20+int64(seed%20)
			for flow := range p.flows {
				p.until(time.Duration(frame)*interval + time.Duration(flow)*7*ms)
				packets := 1 + random.IntN(100)
				p.offer(flow, frame, packets)
			}
		}
		p.silent = false
		p.until(10 * time.Second)
		if p.pacer.Held() != 0 {
			t.Fatalf("seed %d: %d packets wait", seed, p.pacer.Held())
		}
		p.checkBeginnings(t, seed, known.Window)
		var whole [3]int
		for _, s := range p.out {
			if s.begins {
				whole[s.flow]++
			}
		}
		for _, n := range whole {
			if n < (whole[0]+whole[1]+whole[2])/6 {
				t.Errorf("seed %d: %v frames of the flows left", seed, whole)
			}
		}
	}
}

// checkBeginnings fails if a frame began that did not fit the window beside the packets that had left and were not
// reported, except after a pause.
func (p *windowPath) checkBeginnings(t *testing.T, seed uint64, window int) {
	t.Helper()
	for i, s := range p.out {
		if !s.begins || i > 0 && s.left-p.out[i-1].left >= windowPause {
			continue
		}
		flight := 0
		for j := i - 1; j >= 0 && (j >= len(p.reports) || p.reports[j] > s.left); j-- {
			flight += p.bytes
		}
		frame := 0
		for _, o := range p.out[i:] {
			if o.turn == s.turn {
				frame += p.bytes
			}
		}
		if flight+min(frame, window-window/8) > window {
			t.Fatalf("seed %d: a frame of %d bytes began at %v with %d bytes in flight and a window of %d", seed, frame,
				s.left, flight, window)
		}
	}
}

// TestWindowPause offers a frame every 33 ms to a path that reports nothing: the pauses between the frames that begin
// all the same are 200, 400 and 800 ms, and 800 ms from then on. After a report the pause is 200 ms again.
func TestWindowPause(t *testing.T) {
	p := newWindowPath(t, Burst5ms, 1, Path{Estimate: 96_000_000, Window: 1})
	frame := int64(0)
	// run offers frames for a time, and returns the pauses before those that begin from then on.
	run := func(d time.Duration) (pauses []time.Duration) {
		from := len(p.out)
		for end := p.now + d; p.now < end; frame++ {
			p.offer(0, frame, 1)
			p.until(p.now + time.Second/30)
		}
		for i := max(from, 1); i < len(p.out); i++ {
			pauses = append(pauses, p.out[i].left-p.out[i-1].left)
		}
		return pauses
	}
	check := func(got []time.Duration, want ...time.Duration) {
		t.Helper()
		for i := range want {
			if i >= len(got) || got[i] < want[i] || got[i] > want[i]+time.Second/30+ms {
				t.Errorf("the pauses are %v, expected %v, each up to a frame interval longer", got, want)
				return
			}
		}
	}
	p.silent = true
	check(run(3500*ms), 200*ms, 400*ms, 800*ms, 800*ms)
	p.silent = false
	run(100 * ms)
	p.silent = true
	run(50 * ms)
	check(run(2*time.Second), 200*ms, 400*ms, 800*ms)
}
