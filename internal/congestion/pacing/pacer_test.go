package pacing

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// sent is a packet of a path that has left. turn counts the frames that had begun with its own.
type sent struct {
	flow, number  int
	begins        bool
	arrived, left time.Duration
	due           time.Duration
	turn          int
}

// path is one receiver, stepped in virtual time: arriving packets are offered, and ticks begin when they are due.
type path struct {
	pacer     *Pacer[sent, int]
	schedules []Schedule
	flows     []*Flow[sent]
	numbers   []int
	bytes     int
	now       time.Duration
	out       []sent
	// budget is the time for which a frame may wait, 0 for any time. dropping has the flows of which a frame is
	// dropped.
	budget   time.Duration
	dropping []bool
	dropped  int
	turns    []int
	turn     int
}

func newPath(t testing.TB, mode Mode, flows int) *path {
	p := &path{pacer: NewPacer[sent, int](plan(t, mode)), bytes: 1200}
	for range flows {
		p.schedules = append(p.schedules, NewSchedule(plan(t, mode), 90000))
		p.flows = append(p.flows, &Flow[sent]{})
	}
	p.numbers, p.dropping, p.turns = make([]int, flows), make([]bool, flows), make([]int, flows)
	return p
}

// until advances the time.
func (p *path) until(at time.Duration) {
	for {
		next, ok := p.pacer.Next()
		if !ok || next > at {
			p.now = max(p.now, at)
			return
		}
		p.now = max(p.now, next)
		p.pacer.Tick(p.now)
		for {
			packet, ok := p.pacer.Pop(p.now)
			if !ok {
				break
			}
			p.leave(packet)
		}
	}
}

func (p *path) leave(packet sent) {
	flow := packet.flow
	if packet.begins {
		if p.dropping[flow] = p.budget > 0 && p.now-packet.arrived > p.budget; p.dropping[flow] {
			p.dropped++
		}
	}
	if p.dropping[flow] {
		return
	}
	if packet.begins {
		p.turn++
		p.turns[flow] = p.turn
		p.pacer.Begin(p.flows[flow])
	}
	packet.left, packet.turn = p.now, p.turns[flow]
	p.out = append(p.out, packet)
	p.pacer.Spend(p.bytes)
}

// arrive offers a packet of a flow now.
func (p *path) arrive(flow int, packet Packet) {
	due := p.schedules[flow].Due(packet, p.now)
	offer := Offer{
		Arrived: p.now, Due: due, Begins: packet.Framed && packet.Index == 0, Frame: packet.Packets * p.bytes,
	}
	if p.budget > 0 {
		offer.Expires = p.now + p.budget + 1
	}
	s := sent{flow: flow, number: p.numbers[flow], begins: offer.Begins, arrived: p.now, due: due}
	p.numbers[flow]++
	if p.pacer.Admit(p.flows[flow], offer, p.now) {
		p.leave(s)
	} else {
		p.pacer.Hold(p.flows[flow], s, offer)
	}
}

// transcript lists the numbers of packets that left, by time.
func (p *path) transcript() string {
	var b strings.Builder
	for i := 0; i < len(p.out); {
		n := 0
		for i+n < len(p.out) && p.out[i+n].left == p.out[i].left {
			n++
		}
		fmt.Fprintf(&b, "%v: %d\n", p.out[i].left.Round(10*time.Microsecond), n)
		i += n
	}
	return b.String()
}

func lines(s string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimSpace(s), "\n") {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}

// little is a path with an estimate, in bit/s, of which the sender uses little.
func little(estimate int64) Path { return Path{Estimate: estimate, ApplicationLimited: true} }

func TestTranscripts(t *testing.T) {
	for _, test := range []struct {
		name  string
		mode  Mode
		flows int
		known Path
		run   func(p *path)
		want  string
	}{
		{"42 packets at once", Default, 1, Path{}, func(p *path) { p.frame(42, 0) }, `
			0s: 7
			2.22ms: 7
			4.44ms: 7
			6.67ms: 7
			8.89ms: 7
			11.11ms: 7`},
		{"175 packets at once leave in ticks of 16", Default, 1, Path{}, func(p *path) { p.frame(175, 0) }, `
			0s: 16
			1.22ms: 16
			2.44ms: 16
			3.66ms: 16
			4.88ms: 16
			6.1ms: 16
			7.31ms: 16
			8.53ms: 16
			9.75ms: 16
			10.97ms: 16
			12.19ms: 15`},
		{"few packets leave one by one", Default, 1, Path{}, func(p *path) { p.frame(4, 0) }, `
			0s: 1
			3.33ms: 1
			6.67ms: 1
			10ms: 1`},
		{"as it arrives, 13 ms, in the publisher's ticks", Default, 1, Path{},
			func(p *path) { p.frame(42, 2220*time.Microsecond) }, `
			0s: 7
			2.22ms: 7
			4.44ms: 7
			6.66ms: 7
			8.88ms: 7
			11.1ms: 7`},
		{"slower than the pace", Default, 1, Path{}, func(p *path) { p.frame(42, 5*ms) }, `
			0s: 7
			5ms: 7
			10ms: 7
			15ms: 7
			20ms: 7
			25ms: 7`},
		{"two frames at once: each at its pace, ticks of about 16", Default, 2, Path{},
			func(p *path) { p.frame(84, 0) }, `
			0s: 16
			480µs: 16
			2.54ms: 16
			3.81ms: 16
			5.08ms: 16
			6.35ms: 16
			7.62ms: 16
			8.89ms: 16
			10.16ms: 16
			11.43ms: 16
			12.7ms: 8`},
		{"spread over 20 ms", "spread:20ms", 1, Path{}, func(p *path) { p.frame(42, 0) }, `
			0s: 5
			2.38ms: 5
			4.76ms: 5
			7.14ms: 5
			9.52ms: 5
			11.9ms: 5
			14.29ms: 5
			16.67ms: 5
			19.05ms: 2`},
		{"bursts as of GCC", Burst5ms, 1, Path{}, func(p *path) { p.frame(42, 0) }, `
			0s: 16
			5.08ms: 16
			10.16ms: 10`},
		// 2.5 × 20 Mbit/s are 31.25 kB, 26 packets, in 5 ms.
		{"bursts at 2.5 times the estimate", Burst5ms, 1, little(20_000_000),
			func(p *path) { p.until(100 * ms); p.frame(42, 0) }, `
			100ms: 27
			105.18ms: 15`},
		// 2.5 × 4 Mbit/s are 2.5 kB, 2.08 packets, in 2 ms.
		{"an estimate below the frame's pace", Default, 1, little(4_000_000),
			func(p *path) { p.until(100 * ms); p.frame(20, 0) }, `
			100ms: 3
			102.88ms: 3
			105.76ms: 3
			108.64ms: 3
			111.52ms: 3
			114.4ms: 3
			117.28ms: 2`},
		// 100 Mbit/s are 16 packets in 1.536 ms: 50 kB take 4 ms.
		{"a frame that is short beside the estimate", Default, 1, little(100_000_000),
			func(p *path) { p.until(100 * ms); p.frame(42, 0) }, `
			100ms: 16
			101.54ms: 17
			103.17ms: 9`},
		{"two such frames share the estimate", Default, 2, little(100_000_000),
			func(p *path) { p.until(100 * ms); p.frame(42, 0) }, `
			100ms: 16
			100.61ms: 9
			102.4ms: 17
			104.03ms: 17
			105.66ms: 17
			107.3ms: 8`},
		{"a frame that fills its interval at the estimate", Default, 1, little(12_000_000),
			func(p *path) { p.until(100 * ms); p.frame(42, 0) }, `
			100ms: 7
			102.24ms: 7
			104.48ms: 7
			106.72ms: 7
			108.96ms: 7
			111.2ms: 7`},
		{"a short frame where the estimate is used", Default, 1, Path{Estimate: 100_000_000},
			func(p *path) { p.until(100 * ms); p.frame(42, 0) }, `
			100ms: 7
			102.22ms: 7
			104.44ms: 7
			106.67ms: 7
			108.89ms: 7
			111.11ms: 7`},
		{"a fixed span whatever the estimate", "spread:20ms", 1, little(100_000_000),
			func(p *path) { p.until(100 * ms); p.frame(42, 0) }, `
			100ms: 5
			102.38ms: 5
			104.76ms: 5
			107.14ms: 5
			109.52ms: 5
			111.9ms: 5
			114.29ms: 5
			116.67ms: 5
			119.05ms: 2`},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPath(t, test.mode, test.flows)
			p.pacer.SetPath(test.known, 0)
			test.run(p)
			p.until(time.Second)
			if got := p.transcript(); got != lines(test.want) {
				t.Errorf("packets left at\n%s, expected\n%s", got, lines(test.want))
			}
		})
	}
}

// TestEvenly halves the rate of the same frame if the queue of the path is full, or short, or could mark the packets of
// bursts.
func TestEvenly(t *testing.T) {
	// 1.25 × 4 Mbit/s are 1.25 kB, 1.04 packets, in 2 ms.
	want := lines(`
		100ms: 2
		103.84ms: 2
		107.68ms: 2
		111.52ms: 2
		115.36ms: 2`)
	for _, known := range []Path{{Estimate: 4_000_000, Evenly: true}, {Estimate: 4_000_000, Unmarked: true}} {
		p := newPath(t, Default, 1)
		p.pacer.SetPath(known, 0)
		p.until(100 * ms)
		p.frame(10, 0)
		p.until(time.Second)
		if got := p.transcript(); got != want {
			t.Errorf("%+v: packets left at\n%s, expected\n%s", known, got, want)
		}
	}
	// Short frames do not leave early, however little of the estimate is used, if the queue is full or short.
	p := newPath(t, Default, 1)
	p.pacer.SetPath(Path{Estimate: 100_000_000, Evenly: true, ApplicationLimited: true}, 0)
	p.until(100 * ms)
	p.frame(42, 0)
	p.until(time.Second)
	if got, spread := p.out[41].left, 100*ms+11*ms; got < spread {
		t.Errorf("the last of 42 packets left at %v, expected it no earlier than %v", got, spread)
	}
}

// frame offers a frame of that many packets on every flow: at once, or seven packets at a time.
func (p *path) frame(packets int, every time.Duration) {
	begun := p.now
	for flow := range p.flows {
		for i := range packets {
			if every > 0 {
				p.until(begun + time.Duration(i/7)*every)
			}
			p.arrive(flow, framed(1, i, packets))
		}
	}
}
