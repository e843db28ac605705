package pacing

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// repairPath is a path on which retransmissions are requested.
type repairPath struct {
	*path
	repairs []time.Duration
}

// ask requests packets, which leave at once or later.
func (p *repairPath) ask(packets int) {
	for n := range packets {
		if p.pacer.AdmitRepair(p.now) {
			p.repeat()
		} else if !p.pacer.HoldRepair(n) {
			return
		}
	}
}

func (p *repairPath) repeat() {
	p.repairs = append(p.repairs, p.now)
	p.pacer.SpendRepair(p.bytes)
	p.pacer.Spend(p.bytes)
}

// until advances the time.
func (p *repairPath) until(at time.Duration) {
	for next, ok := p.pacer.Next(); ok && next <= at; next, ok = p.pacer.Next() {
		p.now = max(p.now, next)
		p.pacer.Tick(p.now)
		for _, ok := p.pacer.PopRepair(); ok; _, ok = p.pacer.PopRepair() {
			p.repeat()
		}
		for packet, ok := p.pacer.Pop(p.now); ok; packet, ok = p.pacer.Pop(p.now) {
			p.leave(packet)
		}
		p.pacer.Dry()
	}
	p.now = max(p.now, at)
}

// transcript lists the numbers of retransmissions and other packets that left, by time.
func (p *repairPath) transcript() string {
	var b strings.Builder
	repairs, media := p.repairs, p.out
	for len(repairs)+len(media) > 0 {
		at := time.Duration(1<<63 - 1)
		if len(repairs) > 0 {
			at = repairs[0]
		}
		if len(media) > 0 {
			at = min(at, media[0].left)
		}
		r, m := 0, 0
		for r < len(repairs) && repairs[r] == at {
			r++
		}
		for m < len(media) && media[m].left == at {
			m++
		}
		fmt.Fprintf(&b, "%v: %d+%d\n", at.Round(10*time.Microsecond), r, m)
		repairs, media = repairs[r:], media[m:]
	}
	return b.String()
}

// TestRepairs requests packets of 1,200 bytes.
func TestRepairs(t *testing.T) {
	for _, test := range []struct {
		name              string
		estimate, carried int64
		run               func(p *repairPath)
		want              string
	}{
		{"at once without an estimate", 0, 0, func(p *repairPath) { p.ask(100) }, `
			0s: 100+0`},
		// 2.5 × 4 Mbit/s are 2.5 kB, 2.08 packets, in 2 ms.
		{"at 2.5 times the estimate", 4_000_000, 0, func(p *repairPath) { p.ask(10) }, `
			0s: 3+0
			2.88ms: 3+0
			5.76ms: 3+0
			8.64ms: 1+0`},
		{"at 2.5 times the capacity while a queue is drained", 1_000_000, 4_000_000,
			func(p *repairPath) { p.ask(10) }, `
			0s: 3+0
			2.88ms: 3+0
			5.76ms: 3+0
			8.64ms: 1+0`},
		{"ahead of media", 4_000_000, 0, func(p *repairPath) { p.frame(10, 0); p.ask(5) }, `
			0s: 3+0
			2.88ms: 2+0
			6.8ms: 0+3
			9.68ms: 0+3
			12.56ms: 0+3
			15.44ms: 0+1`},
		{"the limit is lifted", 100_000, 0, func(p *repairPath) {
			p.ask(10)
			p.until(10 * ms)
			p.pacer.SetPath(Path{},
				p.now)
		}, `
			0s: 1+0
			10ms: 9+0`},
		// At that time they have 2.5 kB of a tick, and as much for a late wake-up.
		{"a probe does not hurry them", 4_000_000, 0,
			func(p *repairPath) { p.pacer.Probe(40_000_000, 1<<20, 5, 10*ms, 0); p.frame(10, 0); p.ask(10) }, `
			0s: 0+9
			2.16ms: 5+1
			4.16ms: 2+0
			6.16ms: 2+0
			8.16ms: 1+0`},
		// Five packets complete it.
		{"a slow probe delays them", 40_000_000, 0,
			func(p *repairPath) { p.pacer.Probe(4_000_000, 5000, 5, 20*ms, 0); p.ask(10) }, `
			0s: 1+0
			2.4ms: 1+0
			4.4ms: 1+0
			6.4ms: 1+0
			8.4ms: 6+0`},
	} {
		p := &repairPath{path: newPath(t, "spread:1ms", 1)}
		p.pacer.SetPath(Path{Estimate: test.estimate, Carried: test.carried}, 0)
		test.run(p)
		p.until(time.Second)
		if got := p.transcript(); got != lines(test.want) {
			t.Errorf("%s: left\n%s, expected\n%s", test.name, got, lines(test.want))
		}
		if _, ok := p.pacer.Next(); ok {
			t.Errorf("%s: something waits", test.name)
		}
	}
}

// TestRepairsCountAgainstTheEstimate sends retransmissions at half of an estimate of 4 Mbit/s: a flow that could fill
// the estimate gets the rest.
func TestRepairsCountAgainstTheEstimate(t *testing.T) {
	p := &repairPath{path: newPath(t, Default, 1)}
	p.pacer.SetPath(Path{Estimate: 4_000_000}, 0)
	for frame := range int64(300) {
		for i := range 14 {
			p.arrive(0, framed(frame, i, 14))
		}
		p.ask(7)
		p.until(time.Duration(frame+1) * time.Second / 30)
	}
	bits := float64(8 * p.bytes)
	if repairs, media := float64(len(p.repairs))*bits/10,
		float64(len(p.out))*bits/10; repairs < 1.95e6 || media < 1.95e6 || repairs+media > 4.1e6 {
		t.Errorf("%.0f bit/s of retransmissions and %.0f of media left, expected 2 Mbit/s of each", repairs, media)
	}
}

// TestRepairsAreBounded requests more packets than the queue holds, and clears the queue.
func TestRepairsAreBounded(t *testing.T) {
	p := &repairPath{path: newPath(t, Default, 1)}
	p.pacer.SetPath(Path{Estimate: 1_000_000}, 0)
	p.ask(3 * maxRepairs)
	if n := p.pacer.repairs.waiting.Len(); n != maxRepairs {
		t.Errorf("%d retransmissions wait, expected %d", n, maxRepairs)
	}
	p.pacer.ClearRepairs()
	if _, ok := p.pacer.Next(); ok {
		t.Error("something waits")
	}
	// Retransmissions that are popped but not sent cost nothing.
	p.until(time.Second)
	p.repairs = nil
	p.ask(100)
	p.now += 100 * ms
	p.pacer.Tick(p.now)
	taken := 0
	for _, ok := p.pacer.PopRepair(); ok; _, ok = p.pacer.PopRepair() {
		taken++
	}
	if taken+len(p.repairs) != 100 {
		t.Errorf("%d retransmissions were taken, expected all of 100", taken+len(p.repairs))
	}
}
