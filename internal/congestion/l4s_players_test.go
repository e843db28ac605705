package congestion

import (
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
)

// ecnPlayer: NOW sent records that packets leave. NOW report COUNT left=CODEPOINT as=CODEPOINT [delay=MS] [queue=MS]
// [lost=COUNT] reports packets that arrived within the last 25 ms, after others that were lost, with a standing queue.
// NOW step [rtt=MS] advances the time. Codepoints are not, ect1, ect0 and ce.
type ecnPlayer struct {
	ecn ecnValidation
}

var codepoints = map[string]ecn.Codepoint{"not": ecn.NotECT, "ect1": ecn.ECT1, "ect0": ecn.ECT0, "ce": ecn.CE}

func (p *ecnPlayer) play(l *line) {
	const interval = 25 * time.Millisecond
	state, sending, now := p.ecn.state, p.ecn.sending, l.ms(0)
	switch l.words[1] {
	case "sent":
		p.ecn.sent(now)
	case "step":
		p.ecn.step(now, l.msKey("rtt", 20))
	case "report":
		count, left, as := int(l.number(2)), codepoints[l.keys["left"]], codepoints[l.keys["as"]]
		for range int(l.key("lost", 0)) {
			p.ecn.lost(now-interval, left)
		}
		marks := 0
		for i := range count {
			arrived := now - interval*time.Duration(count-i)/time.Duration(count)
			a := arrival{sent: arrived, arrived: arrived, left: left, ecn: as}
			if p.ecn.arrived(now, &a, l.msKey("delay", 0)) {
				marks++
			}
		}
		if marks > 0 {
			l.printf("%d marks", marks)
		}
		if reason, fallback := p.ecn.judge(now, l.msKey("queue", 0)); fallback {
			l.printf("fallback: %v", reason)
		}
	}
	if p.ecn.state != state || p.ecn.sending != sending {
		l.printf("%v, packets leave as %v", p.ecn.state, p.ecn.sending)
	}
}

// marksPlayer: NOW every=MS bytes=COUNT [marked=COUNT] [delay=MS] [queue=MS] [trip=MS] [used=SHARE] [limited=1]
// [until=NOW] passes reports to the response to marks.
type marksPlayer struct {
	response markResponse
}

func newMarksPlayer(rate float64) *marksPlayer { return &marksPlayer{newMarkResponse(0, rate)} }

func (p *marksPlayer) play(l *line) {
	for now := l.ms(0); now <= l.msKey("until", l.number(0)); now += l.msKey("every", 25) {
		p.response.report(now, markedReport{acked: int(l.key("bytes", 0)), marked: int(l.key("marked", 0)),
			sent: now - l.msKey("trip", 20), delay: l.msKey("delay", 1), trip: l.msKey("trip", 20),
			latest: now, queue: l.msKey("queue", 0),
			used: l.key("used", 1), limited: l.key("limited", 0) > 0})
	}
	l.printf("%.2f Mbit/s, α %.4f", p.response.rate/1e6, p.response.alpha)
	if p.response.slow.others {
		l.printf("other flows until %v", p.response.slow.retry)
	}
}

// ticksPlayer: NOW ticks=COUNT packets=COUNT first=EVERY others=EVERY delay=MS reports ticks of that many packets. Of
// the first packets of ticks one in EVERY is marked, and so of the others, 0 for none. Marked packets have waited for
// delay.
type ticksPlayer struct {
	ticks              tickMarks
	sent               time.Duration
	beginnings, others int
}

func (p *ticksPlayer) play(l *line) {
	every := func(name string, n int) bool { e := int(l.key(name, 0)); return e > 0 && n%e == 0 }
	for range int(l.key("ticks", 0)) {
		p.sent += 500 * time.Microsecond
		p.beginnings++
		p.ticks.add(p.sent, l.msKey("delay", 0), every("first", p.beginnings))
		for range int(l.key("packets", 1)) - 1 {
			p.others++
			p.ticks.add(p.sent, l.msKey("delay", 0), every("others", p.others))
		}
	}
	p.ticks.judge(l.ms(0))
	l.printf("spaced %v", p.ticks.spaced)
}
