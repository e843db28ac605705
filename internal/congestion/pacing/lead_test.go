package pacing

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestLeads: packets lead if the sender uses little of the capacity without cross traffic, and only with plans of a
// share of the interval.
func TestLeads(t *testing.T) {
	const spread = 13 * ms
	for _, test := range []struct {
		mode  Mode
		known Path
		leads bool
	}{
		{Default, Path{Estimate: 60_000_000}, false},
		{Default, Path{Estimate: 60_000_000, ApplicationLimited: true}, true},
		{Default, Path{Estimate: 60_000_000, ApplicationLimited: true, Evenly: true}, false},
		{Default, Path{Estimate: 60_000_000, ApplicationLimited: true, Unmarked: true}, true},
		{Default, Path{Estimate: 60_000_000, ApplicationLimited: true, Unmarked: true, Evenly: true}, false},
		{Default, Path{Estimate: 60_000_000, Unmarked: true}, false},
		{Default, Path{ApplicationLimited: true}, false},
		{"spread:13ms", Path{Estimate: 60_000_000, ApplicationLimited: true}, false},
	} {
		p := newPath(t, test.mode, 1)
		p.pacer.SetPath(test.known, 0)
		p.until(100 * ms)
		p.frame(42, 0)
		p.until(time.Second)
		// At 60 Mbit/s 42 packets take 6.7 ms.
		if took := p.out[41].left - 100*ms; (took < 8*ms) != test.leads || took > spread {
			t.Errorf("%s, %+v: a frame left within %v, expected it to lead: %v", test.mode, test.known, took,
				test.leads)
		}
	}
}

// TestLeadChangesWithinAFrame has a frame of 60 packets in transmission at 100 Mbit/s, at which a packet takes 96 µs,
// and 222 µs by its schedule.
func TestLeadChangesWithinAFrame(t *testing.T) {
	used, unused := Path{Estimate: 100_000_000}, little(100_000_000)
	for _, test := range []struct {
		name     string
		from, to Path
		want     string
	}{
		// The sent packets are ahead of the schedule, and the rest leaves by the schedule.
		{"no more", unused, used, `
			100ms: 16
			101.54ms: 17
			107.33ms: 10
			109.56ms: 10
			111.78ms: 7`},
		// A tick of the rest leaves at once, and the remaining packets at the estimate.
		{"from then on", used, unused, `
			100ms: 10
			102.22ms: 10
			103ms: 15
			104.62ms: 17
			106.25ms: 8`},
	} {
		p := newPath(t, Default, 1)
		p.pacer.SetPath(test.from, 0)
		p.until(100 * ms)
		p.frame(60, 0)
		p.until(103 * ms)
		p.pacer.SetPath(test.to, p.now)
		p.until(time.Second)
		if got := p.transcript(); got != lines(test.want) {
			t.Errorf("%s: packets left at\n%s, expected\n%s", test.name, got, lines(test.want))
		}
	}
}

// TestLeadOwesWhatScheduleTook sends a frame within 13 ms that takes 25 ms at the estimate: the next frame leads only
// after the path would have delivered the first.
func TestLeadOwesWhatScheduleTook(t *testing.T) {
	p := newPath(t, Default, 2)
	p.pacer.SetPath(Path{Estimate: 16_000_000}, 0)
	for i := range 42 {
		p.arrive(0, framed(1, i, 42))
	}
	p.until(14 * ms)
	p.pacer.SetPath(little(16_000_000), p.now)
	for i := range 8 {
		p.arrive(1, framed(1, i, 8))
	}
	p.until(time.Second)
	for _, s := range p.out[42:] {
		if s.due > s.left+tickTime && s.left < 25*ms {
			t.Errorf("a packet that is due at %v left at %v, expected it not to leave early before 25 ms",
				s.due, s.left)
		}
	}
}

// TestLeadComesAndGoes switches at random, every few milliseconds, whether packets lead. Early packets never wait
// longer than a tick, and the allowance for a late one, on a path with the rate of the estimate. No packet leaves later
// than without leading, except for a tick.
func TestLeadComesAndGoes(t *testing.T) {
	const estimate = 20_000_000
	for seed := range uint64(20) {
		flapping, steady := flap(t, seed, little(estimate)), flap(t, seed, Path{Estimate: estimate})
		checkEarly(t, seed, flapping, estimate)
		left := make(map[[2]int]time.Duration)
		for _, s := range steady.out {
			left[[2]int{s.flow, s.number}] = s.left
		}
		for _, s := range flapping.out {
			if most := left[[2]int{s.flow, s.number}] + tickTime; s.left > most {
				t.Fatalf("seed %d: packet %d of flow %d left at %v, expected it by %v", seed, s.number, s.flow,
					s.left, most)
			}
		}
	}
}

// flap sends frames of two flows for two seconds over a path that changes now and then, with the same estimate.
func flap(t *testing.T, seed uint64, other Path) *path {
	p, random := newPath(t, Default, 2), rand.New(rand.NewPCG(seed, 7))
	for frame := range int64(60) {
		for end := time.Duration(frame) * 33 * ms; p.now < end; {
			known := Path{Estimate: other.Estimate}
			if random.IntN(2) == 0 {
				known = other
			}
			p.pacer.SetPath(known, p.now)
			p.until(min(p.now+time.Duration(1+random.IntN(8))*ms, end))
		}
		for flow, packets := range [...]int{1 + random.IntN(42), 1 + random.IntN(20)} {
			for i := range packets {
				p.arrive(flow, framed(frame, i, packets))
			}
		}
	}
	p.until(time.Hour)
	return p
}

// checkEarly fails if a packet left before its tick although the packets before it would still be queued on a path with
// the rate of the estimate. It also fails if no packet left early.
func checkEarly(t *testing.T, seed uint64, p *path, estimate float64) {
	t.Helper()
	rate := estimate / 8
	most := rate*(tickTime+slack).Seconds() + float64(p.bytes)
	waits, early := 0.0, 0
	var before time.Duration
	for _, s := range p.out {
		waits = max(0, waits-rate*(s.left-before).Seconds())
		before = s.left
		if s.due > s.left+tickTime {
			early++
			if waits > most {
				t.Fatalf("seed %d: a packet left %v before it was due with %.0f bytes queued on the path, "+
					"expected at most %.0f", seed, s.due-s.left, waits, most)
			}
		}
		waits += float64(p.bytes)
	}
	if early == 0 {
		t.Errorf("seed %d: no packet left early", seed)
	}
}
