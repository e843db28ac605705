package congestion

import (
	"slices"
	"time"
)

// groupsPlayer: SENT ARRIVED adds a packet.
type groupsPlayer struct{ groups groups }

func (p *groupsPlayer) play(l *line) {
	if d, ok := p.groups.add(l.ms(0), l.ms(1)); ok {
		l.printf("sent %v, arrived %v, at %v", d.sent, d.arrived, d.at)
	}
}

// overusePlayer: COUNT every=MS gain=MS adds COUNT comparisons of groups, each later than the last by every and delayed
// by gain more.
type overusePlayer struct {
	trend    trendline
	detector overuseDetector
	at       time.Duration
}

func (p *overusePlayer) play(l *line) {
	every, gain := l.msKey("every", 10), l.msKey("gain", 0)
	usage := p.detector.usage
	for i := range int(l.number(0)) {
		p.at += every + gain
		d := groupDelta{sent: every, arrived: every + gain, at: p.at}
		p.detector.add(p.trend.add(d), d)
		if p.detector.usage != usage {
			usage = p.detector.usage
			l.printf("%v after %d groups", usage, i+1)
		}
	}
	l.printf("slope %.3f, trend %.1f, threshold %.1f", p.trend.slope, p.detector.trend, p.detector.threshold)
}

// queuePlayer: FROM TO delay=MS [burst=MS] adds a packet each 5 ms, with burst every 33 ms six packets whose delay
// rises by that amount; over NOW and reduced NOW call those methods, with a limit of 10 ms and a round trip of 20 ms.
type queuePlayer struct{ queue standingQueue }

func (p *queuePlayer) play(l *line) {
	const limit, rtt = 10 * time.Millisecond, 20 * time.Millisecond
	switch l.words[0] {
	case "over":
		l.printf("%v", p.queue.over(l.ms(1), limit))
	case "reduced":
		if p.queue.reduced(l.ms(1), rtt, limit) {
			l.printf("the path has become longer")
		}
	default:
		n := 0
		for at := l.ms(0); at < l.ms(1); at += 5 * time.Millisecond {
			p.queue.add(at, l.msKey("delay", 0)+l.msKey("burst", 0)*time.Duration(n%7)/6)
			n++
		}
		l.printf("standing %v", p.queue.delay)
	}
}

// collapsePlayer: SENT packets=N rate=R arrives=R [delay=MS] [variation=MS] [stall=MS] sends a frame of N packets of
// 1,200 bytes at a rate, which arrives after delay at another rate, while the estimate is 100 Mbit/s; half-way the
// arrivals stall.
type collapsePlayer struct{ collapse collapse }

func (p *collapsePlayer) play(l *line) {
	const packetSize = 1200
	sent := l.ms(0)
	arrived := sent + l.msKey("delay", 0)
	packets := int(l.key("packets", 0))
	for i := range packets {
		if i == packets/2 {
			arrived += l.msKey("stall", 0)
		}
		arrived = max(arrived, sent)
		if left := p.collapse.add(sent, arrived, packetSize, arrived-sent,
			collapseGain+collapseVariations*l.msKey("variation", 0), collapseShare, 100e6); left > 0 {
			l.printf("packet %d, after %v: %.1f left", i+1, arrived-l.ms(0), left/1e6)
		}
		sent += duration(packetSize * 8 / 1000 / l.key("rate", 1))
		arrived += duration(packetSize * 8 / 1000 / l.key("arrives", 1))
	}
}

// acknowledgedPlayer: FROM TO every=MS [bytes=B] [frame=MS burst=MS] [late=MS] adds packets; with frame and burst only
// in the first burst ms of each frame; late is the increase of the delay.
type acknowledgedPlayer struct{ acked acknowledged }

func (p *acknowledgedPlayer) play(l *line) {
	frame, burst := l.msKey("frame", 1), l.msKey("burst", 1)
	for at := l.ms(0); at < l.ms(1); at += l.msKey("every", 1) {
		if (at-l.ms(0))%frame < burst {
			p.acked.add(at, at+l.msKey("late", 0), int(l.key("bytes", 1000)))
		}
	}
	rate, ok := p.acked.rate()
	latest, _ := p.acked.latest()
	l.printf("known %v, rate %.3f, latest %.3f, bursts %.2f", ok, rate/1e6, latest/1e6, p.acked.bursts()/1e6)
}

// aimdPlayer: NOW normal|overusing|underusing|probed [acked=R] [latest=R] [bursts=R] [waited] [rtt=MS] [inherent=SHARE]
// [until=NOW], the last every 25 ms.
type aimdPlayer struct{ aimd aimd }

func newAIMDPlayer() *aimdPlayer {
	return &aimdPlayer{newAIMD(DefaultConfig().Rate, Limits{Min: 1e6, Start: 10e6, Max: 100e6})}
}

func (p *aimdPlayer) play(l *line) {
	usage := map[string]Usage{"normal": Normal, "overusing": Overusing, "underusing": Underusing}
	acked := throughput{rate: l.key("acked", 0) * 1e6, inherent: l.key("inherent", 0)}
	acked.latest = l.key("latest", acked.rate/1e6) * 1e6
	acked.bursts = l.key("bursts", acked.rate/1e6) * 1e6
	acked.known, acked.waited = acked.rate > 0, slices.Contains(l.words, "waited")
	if l.words[1] == "probed" {
		p.aimd.probed(l.ms(0), l.number(2)*1e6)
	} else {
		for now := l.ms(0); now <= l.msKey("until", l.number(0)); now += 25 * time.Millisecond {
			if p.aimd.update(now, usage[l.words[1]], acked, l.msKey("rtt", 20)) {
				l.printf("reduced")
			}
		}
	}
	state := map[rateState]string{rateHold: "hold", rateIncrease: "increase"}[p.aimd.state]
	l.printf("%.3f, %s, capacity %.2f", p.aimd.rate/1e6, state, p.aimd.capacity.estimate/1e6)
}

// limitedPlayer: estimate RATE; FROM TO sends=RATE [frame=MS] sends frames of packets at once, with this mean rate;
// FROM TO without sends only steps.
type limitedPlayer struct{ limited applicationLimited }

func (p *limitedPlayer) play(l *line) {
	if l.words[0] == "estimate" {
		p.limited.estimated(l.number(1) * 1e6)
		return
	}
	frame := l.msKey("frame", 33)
	packets := int(l.key("sends", 0) * 1e6 * frame.Seconds() / 8 / 1000)
	limited := p.limited.limited
	for now := l.ms(0); now < l.ms(1); now += frame {
		p.limited.step(now)
		for range packets {
			p.limited.sent(now, 1000)
		}
		if p.limited.limited != limited {
			limited = p.limited.limited
			l.printf("%v: limited %v", now, limited)
		}
	}
}

// silencePlayer: NOW sent; NOW reported; NOW step rate=R until=NOW, every 10 ms.
type silencePlayer struct{ silence silence }

func (p *silencePlayer) play(l *line) {
	now := l.ms(0)
	switch l.words[1] {
	case "sent":
		p.silence.sent(now, 20*time.Millisecond)
	case "reported":
		if before, ended := p.silence.reported(now); ended {
			l.printf("ends a silence, before it %.1f", before/1e6)
		}
	case "step":
		rate := l.key("rate", 10) * 1e6
		for ; now <= l.msKey("until", l.number(0)); now += 10 * time.Millisecond {
			if p.silence.step(now, rate) {
				rate *= p.silence.cfg.Backoff
				l.printf("%v: reduce to %.2f", now, rate/1e6)
			}
		}
	}
}

// ackDelayPlayer: FROM TO trip=MS [swing=MS] adds a report every 10 ms, whose smallest round trip is longer by swing in
// every other epoch of 200 ms; restart and rebase NOW call those methods.
type ackDelayPlayer struct{ delay ackDelay }

func (p *ackDelayPlayer) play(l *line) {
	switch l.words[0] {
	case "restart":
		p.delay.restart()
	case "rebase":
		p.delay.rebase(l.ms(1))
	default:
		for at := l.ms(0); at < l.ms(1); at += 10 * time.Millisecond {
			p.delay.add(at, l.msKey("trip", 20)+l.msKey("swing", 0)*(at/delayEpoch%2))
		}
	}
	l.printf("queue %v, tolerates %v: over %v, quiet %v", p.delay.queue, p.delay.tolerance(), p.delay.over(),
		p.delay.quiet())
}

// trainPlayer: cluster ID RATE; ID packets=N sent=RATE arrives=RATE [from=MS] adds packets of 1,000 bytes.
type trainPlayer struct{ trains trainRates }

func (p *trainPlayer) play(l *line) {
	if l.words[0] == "cluster" {
		rate := l.number(2) * 1e6
		p.trains.expect(ProbeCluster{ID: int(l.number(1)), Rate: Bitrate(rate), MinBytes: int(rate * 0.015 / 8),
			MinPackets: 5})
		return
	}
	sent, arrived := l.msKey("from", 0), l.msKey("from", 0)+time.Hour
	seen := false
	for i := range int(l.key("packets", 0)) {
		rate, c, ok := p.trains.add(int(l.number(0)), sent, arrived, 1000)
		if ok && !seen {
			seen = true
			l.printf("from packet %d: cluster %d at %.2f", i+1, c.ID, rate/1e6)
		}
		sent += duration(8 / l.key("sent", 1))
		arrived += duration(8 / l.key("arrives", 1))
	}
	if !seen {
		l.printf("no rate")
	}
}

// probePlayer: NOW step estimate=R [bursts=R] [limited] [busy] [eased] [idle] [full] [rtt=MS] [until=NOW], every 25 ms;
// NOW estimate R; NOW overused R, of bursts; NOW want R; NOW resumed R.
type probePlayer struct{ prober prober }

func newProbePlayer() *probePlayer {
	return &probePlayer{newProber(DefaultConfig().Probe, Limits{Min: 1e6, Start: 10e6, Max: 200e6})}
}

func (p *probePlayer) play(l *line) {
	now := l.ms(0)
	switch l.words[1] {
	case "step":
		s := situation{estimate: l.key("estimate", 10) * 1e6, limited: slices.Contains(l.words, "limited"),
			quiet: !slices.Contains(l.words, "busy"), eased: slices.Contains(l.words, "eased"),
			bursts: l.key("bursts", 0) * 1e6, idle: slices.Contains(l.words, "idle"),
			full: slices.Contains(l.words, "full"),
			rtt:  l.msKey("rtt", 0)}
		for ; now <= l.msKey("until", l.number(0)); now += 25 * time.Millisecond {
			before := p.prober.lastID
			p.prober.step(now, s)
			if p.prober.lastID != before {
				l.printf("%v: planned", now)
			}
		}
	case "estimate":
		p.prober.estimated(now, l.number(2)*1e6)
	case "overused":
		p.prober.overused(l.number(2) * 1e6)
	case "want":
		p.prober.wanted(now, l.number(2)*1e6)
	case "resumed":
		p.prober.resumed(now, l.number(2)*1e6)
	}
	for c, ok := p.prober.next(now); ok; c, ok = p.prober.next(now) {
		l.printf("cluster %d at %v for %v, %d bytes, %d packets", c.ID, c.Rate, c.Duration, c.MinBytes, c.MinPackets)
	}
}
