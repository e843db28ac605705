package congestion

import (
	"math"
	"time"
)

// lossPlayer: COUNT rate=R loss=SHARE [calm=SHARE] [delay=R] [acked=R] makes COUNT observations of 1,000 packets sent
// at a rate. Of every hundred packets, the share loss is lost, evenly spread. One packet in ten meets an empty queue;
// of these the share calm is lost (default: loss). delay is the other estimate.
type lossPlayer struct {
	loss lossEstimator
	now  time.Duration
}

func newLossPlayer() *lossPlayer { return &lossPlayer{loss: newLossEstimator(DefaultConfig().Loss)} }

func (p *lossPlayer) play(l *line) {
	const packets = 1000
	rate, share := l.key("rate", 10)*1e6, l.key("loss", 0)
	calm := l.key("calm", share)
	size := int(rate * p.loss.cfg.Interval.Seconds() / 8 / packets)
	gap := p.loss.cfg.Interval / packets
	for range int(l.number(0)) {
		lost, calmLost := 0.0, 0.0
		for i := range packets {
			received, queued := true, 10*time.Millisecond
			if i%10 == 0 {
				queued = 0
				calmLost += calm
				if calmLost >= 1 {
					calmLost--
					received = false
				}
			} else if lost += (share*10 - calm) / 9; lost >= 1 {
				lost--
				received = false
			}
			p.loss.add(p.now, size, received, queued)
			p.now += gap
		}
		p.loss.update(p.now, l.key("delay", 10)*1e6, l.key("acked", 0)*1e6, DefaultConfig().Limits())
	}
	limit, limiting := p.loss.limit()
	l.printf("bandwidth %.2f, limits %v, loss %.3f, inherent %.3f", limit/1e6, limiting, p.loss.loss(),
		p.loss.best.inherent)
}

// contentionPlayer: NOW packets=N [lost=N] [queue=MS] [inherent=SHARE] is a report whose fastest packet met a queue;
// without queue no packet arrived. inherent is the loss ratio of the path.
type contentionPlayer struct{ contention contention }

func (p *contentionPlayer) play(l *line) {
	queued := time.Duration(math.MaxInt64)
	if _, arrived := l.keys["queue"]; arrived {
		queued = l.msKey("queue", 0)
	}
	p.contention.reported(l.ms(0), int(l.key("lost", 0)), int(l.key("packets", 0)), l.key("inherent", 0), queued)
	if p.contention.present {
		l.printf("others keep the queue full")
	} else {
		l.printf("no others")
	}
}

// shortnessPlayer: NOW packets=N [lost=N] [path=SHARE] [until=NOW] is a report about packets that met a queue, repeated
// every 25 ms until then. path is the possible inherent loss, default 1 %; the round trip is 20 ms.
type shortnessPlayer struct{ shortness shortness }

func (p *shortnessPlayer) play(l *line) {
	for now := l.ms(0); now <= l.msKey("until", l.number(0)); now += 25 * time.Millisecond {
		if p.shortness.reported(now, int(l.key("lost", 0)), int(l.key("packets", 0)), l.key("path", 0.01),
			20*time.Millisecond) {
			l.printf("%v: the rate is too high", now)
		}
	}
	if p.shortness.present {
		l.printf("too short for bursts")
	} else {
		l.printf("long enough")
	}
}
