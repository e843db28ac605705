package pacing

import (
	"math/rand/v2"
	"testing"
	"time"
)

// audioBytes is the size of a packet that bypasses the pacer.
const audioBytes = 100

// departure is a packet that has left, with the bytes that the rates had allowed by then: 2.5 × or 1.25 × the estimate,
// and the estimate itself.
type departure struct {
	at           time.Duration
	bytes        int
	rate, room   float64 // bytes per second
	shaped, even float64
}

// changingPath is a repairPath whose estimate changes all the time.
type changingPath struct {
	*repairPath
	rate, room, shaped, even float64
	reckoned                 time.Duration
	left                     []departure
}

// reckon sums the bytes that the rates have allowed.
func (p *changingPath) reckon() {
	elapsed := (p.now - p.reckoned).Seconds()
	p.shaped += p.rate * elapsed
	p.even += p.room * elapsed
	p.reckoned = p.now
}

// change sets another path.
func (p *changingPath) change(to Path) {
	p.reckon()
	p.pacer.SetPath(to, p.now)
	p.room = float64(to.Estimate) / 8
	p.rate = rateFactor * p.room
	if to.Evenly {
		p.rate = evenFactor * p.room
	}
}

// note collects the packets that have left since the last call.
func (p *changingPath) note(media, repairs int) {
	p.reckon()
	for range media + repairs {
		p.left = append(p.left, departure{at: p.now, bytes: p.bytes, rate: p.rate, room: p.room, shaped: p.shaped,
			even: p.even})
	}
}

// pass advances the time, with ticks that are up to 1.1 ms late.
func (p *changingPath) pass(d time.Duration, random *rand.Rand) {
	for end := p.now + d; ; {
		next, ok := p.pacer.Next()
		if !ok || next > end {
			p.now = max(p.now, end)
			return
		}
		p.now = max(p.now, next) + time.Duration(random.IntN(1100))*time.Microsecond
		media, repairs := len(p.out), len(p.repairs)
		p.repairPath.until(p.now)
		p.note(len(p.out)-media, len(p.repairs)-repairs)
	}
}

// play sends frames of three flows for some seconds, with audio that bypasses the pacer, while the estimate changes by
// a factor of up to 128, and if asked is set, packets are requested again.
func (p *changingPath) play(random *rand.Rand, repairs bool) {
	var frame, change, audio time.Duration
	for number := int64(0); p.now < 2*time.Second; {
		if p.now >= change {
			change = p.now + time.Duration(1+random.IntN(300))*ms
			p.change(Path{Estimate: 1_000_000 << random.IntN(8), Evenly: random.IntN(4) == 0,
				ApplicationLimited: random.IntN(2) == 0})
		}
		if p.now >= audio {
			audio += 20 * ms
			p.reckon()
			p.pacer.Tick(p.now)
			p.pacer.Spend(audioBytes)
		}
		if p.now >= frame {
			frame += 33 * ms
			number++
			media, asked := len(p.out), len(p.repairs)
			for flow := range p.flows {
				// The queue is bounded, as by a latency budget.
				for i, packets := 0, 1+random.IntN(100); i < packets && p.flows[flow].Len() < 200; i++ {
					p.arrive(flow, framed(number, i, packets))
				}
			}
			if repairs {
				p.ask(random.IntN(60))
			}
			p.note(len(p.out)-media, len(p.repairs)-asked)
		}
		p.pass(time.Duration(1+random.IntN(10))*ms, random)
	}
}

// TestChangingEstimates compares the sent bytes with estimates that change all the time, over all windows of up to 300
// ms: with 2.5 × the estimate, plus a tick of media, a tick of retransmissions and the allowance for late timers; and
// without retransmissions with the estimate, plus both slacks.
func TestChangingEstimates(t *testing.T) {
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 5))
		mode := []Mode{Default, "spread:1ms", "spread:20ms"}[seed%3]
		repairs := seed%2 == 0
		p := &changingPath{repairPath: &repairPath{path: newPath(t, mode, 3)}}
		p.play(random, repairs)
		if len(p.left) < 500 || repairs && len(p.repairs) < 100 {
			t.Fatalf("seed %d: %d packets left, %d of them again", seed, len(p.left), len(p.repairs))
		}
		// Every fifth packet begins a window.
		for i := 0; i < len(p.left); i += 5 {
			first, bytes := p.left[i], 0
			rate, room := first.rate, first.room
			for _, d := range p.left[i:] {
				if d.at-first.at > 300*ms {
					break
				}
				bytes += d.bytes
				rate, room = max(rate, d.rate), max(room, d.room)
				burst := min(tickPackets*fullPacket, rate*tickTime.Seconds()) + rate*slack.Seconds()
				if most := d.shaped - first.shaped + 2*burst + float64(3*p.bytes); float64(bytes) > most {
					t.Fatalf("seed %d: %d bytes left from %v to %v, expected at most %.0f", seed, bytes, first.at,
						d.at, most)
				}
				slacks := room * (frameSlack + ongoingSlack).Seconds()
				if most := d.even - first.even + slacks + float64(2*p.bytes); !repairs && float64(bytes) > most {
					t.Fatalf("seed %d: %d bytes left from %v to %v, expected at most %.0f by the estimate", seed, bytes,
						first.at, d.at, most)
				}
			}
		}
	}
}
