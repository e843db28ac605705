package pacing

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// probePath is a path with a limited supply of padding.
type probePath struct {
	*path
	padding int
	b       strings.Builder
}

// until advances the time and records the packets that leave: media, and padding with a plus.
func (p *probePath) until(at time.Duration) {
	for {
		next, ok := p.pacer.Next()
		if !ok || next > at {
			p.now = max(p.now, at)
			return
		}
		p.now = max(p.now, next)
		p.pacer.Tick(p.now)
		media, padding := 0, 0
		for {
			packet, ok := p.pacer.Pop(p.now)
			if !ok {
				break
			}
			p.leave(packet)
			media++
		}
		for p.pacer.Pads() {
			if p.padding == 0 {
				p.pacer.Dry()
				break
			}
			p.padding--
			padding++
			p.pacer.Spend(p.bytes)
		}
		if media+padding > 0 {
			fmt.Fprintf(&p.b, "%v: %d+%d\n", p.now.Round(10*time.Microsecond), media, padding)
		}
	}
}

func TestProbes(t *testing.T) {
	const mbit = 1_000_000
	for _, test := range []struct {
		name    string
		mode    Mode
		padding int
		run     func(p *probePath)
		want    string
	}{
		// 10 Mbit/s are a packet of 1,200 bytes in 0.96 ms: 2.08 in a tick of 2 ms, so 3 at first, and 15 ms are 18,750
		// bytes.
		{"padding alone", Default, 100, func(p *probePath) { p.pacer.Probe(10*mbit, 18_750, 5, 35*ms, 0) }, `
			0s: 0+3
			2.88ms: 0+3
			5.76ms: 0+3
			8.64ms: 0+3
			11.52ms: 0+3
			14.4ms: 0+1`},
		// 42 packets in 13.3 ms would leave by 7 in 2.2 ms; at 96 Mbit/s 16 leave in 1.6 ms, from the first tick on.
		{"held media first, however early", Default, 100, func(p *probePath) {
			p.frame(42, 0)
			p.pacer.Probe(96*mbit, 60_000, 5, 35*ms, 0)
		}, `
			0s: 16+0
			1.6ms: 16+0
			3.2ms: 3+13
			4.8ms: 0+2`},
		{"media that comes meanwhile", Default, 2, func(p *probePath) {
			p.pacer.Probe(96*mbit, 60_000, 5, 35*ms, 0)
			p.until(1 * ms)
			p.frame(60, 0)
		}, `
			0s: 0+2
			2.6ms: 16+0
			4.2ms: 8+0
			11.67ms: 10+0
			13.89ms: 2+0`},
		{"nothing to send", Default, 0, func(p *probePath) { p.pacer.Probe(96*mbit, 60_000, 5, 35*ms, 0) }, ``},
		{"too little, until the end", Default, 10, func(p *probePath) {
			p.pacer.Probe(96*mbit, 60_000, 5, 35*ms, 0)
			p.until(34 * ms)
			p.padding = 10
		}, `
			0s: 0+10`},
		{"a rate below a packet in a tick", Default, 100, func(p *probePath) { p.pacer.Probe(mbit, 1000, 5, 70*ms, 0) },
			`
			0s: 0+1
			9.6ms: 0+1
			19.2ms: 0+1
			28.8ms: 0+1
			38.4ms: 0+1`},
		{"nothing is held with off", Off, 100, func(p *probePath) {
			p.pacer.Probe(10*mbit, 18_750, 5, 35*ms, 0)
			p.until(1 * ms)
			p.frame(5, 0)
		}, `
			0s: 0+3
			7.68ms: 0+3
			10.56ms: 0+3
			13.44ms: 0+2`},
	} {
		p := &probePath{path: newPath(t, test.mode, 1), padding: test.padding}
		test.run(p)
		p.until(time.Second)
		want := ""
		if test.want != "" {
			want = lines(test.want)
		}
		if got := p.b.String(); got != want {
			t.Errorf("%s: left\n%s, expected\n%s", test.name, got, want)
		}
		if p.pacer.Probing() {
			t.Errorf("%s: the probe is still under way", test.name)
		}
		if _, ok := p.pacer.Next(); ok || p.pacer.Held() != 0 {
			t.Errorf("%s: %d packets are left behind", test.name, p.pacer.Held())
		}
	}
}

// TestProbeKeepsItsRate compares probes with their rates while timers are up to 1.1 ms late, with and without media.
func TestProbeKeepsItsRate(t *testing.T) {
	for _, rate := range []int64{3_000_000, 30_000_000, 300_000_000} {
		for _, frame := range []int{0, 10, 200} {
			p := newPath(t, Default, 1)
			bytes := int(float64(rate) * 0.015 / 8)
			p.frame(frame, 0)
			p.pacer.Probe(rate, bytes, 5, 35*ms, 0)
			left, last, lastRun := 0, time.Duration(0), 0
			for p.pacer.Probing() {
				next, _ := p.pacer.Next()
				p.now = max(p.now, next+time.Duration(len(p.out)*7%11)*100*time.Microsecond)
				p.pacer.Tick(p.now)
				before := left
				for {
					if _, ok := p.pacer.Pop(p.now); !ok && !p.pacer.Pads() {
						break
					}
					left += p.bytes
					if p.pacer.Spend(p.bytes) {
						break
					}
				}
				last, lastRun = p.now, left-before
			}
			if left < bytes || left > bytes+5*p.bytes {
				t.Errorf("%d Mbit/s, frame of %d: %d bytes left, expected %d", rate/1e6, frame, left, bytes)
			}
			// The transmission time of the last run is not within the interval.
			if got := float64(left-lastRun) * 8 / last.Seconds(); got < 0.8*float64(rate) || got > 1.25*float64(rate) {
				t.Errorf("%d Mbit/s, frame of %d: left at %.1f Mbit/s", rate/1e6, frame, got/1e6)
			}
		}
	}
}

// TestProbeDoesNotDelayWhatFollows has a probe at six times the estimate: the next frame leaves as without the probe.
func TestProbeDoesNotDelayWhatFollows(t *testing.T) {
	var want string
	for _, probes := range []bool{false, true} {
		p := newPath(t, Default, 1)
		p.pacer.SetPath(little(10_000_000), 0)
		p.frame(20, 0)
		p.until(40 * ms)
		if probes {
			p.pacer.Probe(60_000_000, 112_500, 5, p.now+35*ms, p.now)
			for p.pacer.Probing() {
				next, _ := p.pacer.Next()
				p.now = next
				p.pacer.Tick(p.now)
				for p.pacer.Pads() {
					p.pacer.Spend(p.bytes)
				}
			}
		}
		p.until(60 * ms)
		p.out = p.out[:0]
		p.frame(20, 1)
		p.until(time.Second)
		if got := p.transcript(); !probes {
			want = got
		} else if got != want {
			t.Errorf("after a probe the frame left at\n%s, expected\n%s", got, want)
		}
	}
}
