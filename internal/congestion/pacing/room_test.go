package pacing

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// frames lists the frames that left by the letters of the flows, with the times of the first and the last packet.
func (p *path) frames(packets int) string {
	var b strings.Builder
	for _, s := range p.out {
		if (s.number+1)%packets == 0 {
			first := slices.IndexFunc(p.out, func(o sent) bool {
				return o.flow == s.flow && o.number == s.number-
					packets+1
			})
			fmt.Fprintf(&b, "%c%d: %v to %v\n", 'a'+s.flow, s.number/packets, p.out[first].left.Round(ms),
				s.left.Round(ms))
		}
	}
	return b.String()
}

// TestFramesBeginWithinTheEstimate has frames of 10 packets at 2.4 Mbit/s, at which a packet takes 4 ms, and 100 ms are
// 25 packets.
func TestFramesBeginWithinTheEstimate(t *testing.T) {
	for _, test := range []struct {
		name  string
		flows int
		run   func(p *path)
		want  string
	}{
		// At 2.5 × the estimate a packet takes 1.6 ms. After 79 ms 50 packets have left, and there was room for 25 +
		// 79/4: the next frame begins 21 ms later, and the one after that when the first has taken its 40 ms.
		{"five have room, the sixth waits for it", 1, func(p *path) { p.several(1, 7) }, `
			a0: 2ms to 15ms
			a1: 18ms to 31ms
			a2: 34ms to 47ms
			a3: 50ms to 63ms
			a4: 66ms to 79ms
			a5: 104ms to 116ms
			a6: 144ms to 156ms`},
		{"each flow has its turn", 3, func(p *path) {
			for n := range int64(4) {
				p.until(time.Duration(n) * 40 * ms)
				p.several(n, 1)
			}
		}, `
			c0: 2ms to 44ms
			a0: 2ms to 47ms
			b0: 5ms to 47ms
			b1: 50ms to 102ms
			c1: 50ms to 106ms
			a1: 53ms to 110ms
			c2: 144ms to 156ms
			b2: 184ms to 196ms
			a2: 224ms to 236ms
			c3: 264ms to 276ms
			b3: 304ms to 316ms
			a3: 344ms to 356ms`},
	} {
		p := newPath(t, "spread:1ms", test.flows)
		p.pacer.SetPath(Path{Estimate: 2_400_000}, 0)
		test.run(p)
		p.until(10 * time.Second)
		if got := p.frames(10); got != lines(test.want) {
			t.Errorf("%s: frames left\n%s, expected\n%s", test.name, got, lines(test.want))
		}
	}
}

// TestBegunFramesGoOn has two frames of 60 packets at 2.4 Mbit/s: with room for 25 packets, and 7.5 of ongoingSlack,
// they leave at 2.5 × the estimate for 32.5 / (1/1.6 - 1/4) = 87 ms, which is 54 packets, and then at the estimate:
// after 350 ms both have left.
func TestBegunFramesGoOn(t *testing.T) {
	p := newPath(t, "spread:1ms", 2)
	p.pacer.SetPath(Path{Estimate: 2_400_000}, 0)
	for i := range 60 {
		p.arrive(0, framed(1, i, 60))
	}
	p.until(20 * ms)
	for i := range 60 {
		p.arrive(1, framed(1, i, 60))
	}
	p.until(87 * ms)
	fast := len(p.out)
	p.until(10 * time.Second)
	if got, want := p.frames(60), lines(`
		a0: 2ms to 114ms
		b0: 20ms to 350ms`); got != want || fast != 54 {
		t.Errorf("%d packets left fast, frames left\n%s, expected\n%s", fast, got, want)
	}
}

// several offers frames of 10 packets on every flow.
func (p *path) several(first int64, frames int64) {
	for frame := range frames {
		for flow := range p.flows {
			for i := range 10 {
				p.arrive(flow, framed(first+frame, i, 10))
			}
		}
	}
}

// TestShortOfRoomDoesNotAllocate queues bursts of frames for room, and retransmissions before them.
func TestShortOfRoomDoesNotAllocate(t *testing.T) {
	p := &repairPath{path: newPath(t, Default, 3)}
	p.pacer.SetPath(Path{Estimate: 10_000_000}, 0)
	p.out, p.repairs = make([]sent, 0, 1<<10), make([]time.Duration, 0, 1<<10)
	first, waited := int64(0), false
	step := func() {
		p.out, p.repairs = p.out[:0], p.repairs[:0]
		first += 6
		p.several(first, 6)
		p.ask(20)
		p.until(p.now + 80*ms)
		waited = waited || p.pacer.room.short
		p.until(p.now + 120*ms)
	}
	for range 10 {
		step()
	}
	if n := testing.AllocsPerRun(100, step); n != 0 || !waited || p.pacer.Held() > 0 {
		t.Errorf("%v allocations, waited: %v, %d packets are held", n, waited, p.pacer.Held())
	}
}
