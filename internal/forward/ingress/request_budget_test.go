package ingress

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestRequestBudget(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	b := newRequestBudget()
	b.step(now)
	if got := b.take(10_000); got != requestBurst {
		t.Errorf("%d requests at first, expected the burst of %d", got, requestBurst)
	}
	if got := b.take(1); got != 0 {
		t.Errorf("%d requests right after that, expected none", got)
	}
	b.step(now.Add(100 * time.Millisecond))
	for range 7 {
		b.earn()
	}
	if got := b.take(10_000); got != requestRate/10+7 {
		t.Errorf("%d requests after 100 ms and 7 packets, expected %d", got, requestRate/10+7)
	}
	b.step(now.Add(-time.Hour))
	if got := b.take(10_000); got != 0 {
		t.Errorf("%d requests after the clock went back, expected none", got)
	}
	b.step(now.Add(time.Hour))
	for range 10 {
		b.earn()
	}
	if got := b.take(10_000); got != requestBurst {
		t.Errorf("%d requests after an hour, expected no more than the burst of %d", got, requestBurst)
	}
}

// TestJumpingNumbersAskForLittle uses a publisher whose sequence numbers jump at random. Each jump looks like the loss
// of thousands of packets.
func TestJumpingNumbersAskForLittle(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{rtt: 20 * time.Millisecond})
	p := r.publish(i, 10, volumetric.MIMEVolumetric)
	numbers := 0
	for range 240 {
		p.Next()
		p.Sequence += uint16(random.IntN(1 << 14))
		p.Send(r.now, p.Packets(100)...)
		numbers += len(asked(r.stepped(i, 5*time.Millisecond), 10))
	}
	// 240 steps of 6 ms.
	if most := requestBurst + 240 + requestRate*2; numbers > most || numbers < requestBurst {
		t.Errorf("asked for %d packets, expected at most %d", numbers, most)
	}
	if stats := r.stats(); stats.RequestsLimited < 10_000 || stats.Requested != uint64(numbers) {
		t.Errorf("counted %d requests, %d left out, expected %d and more than 10,000", stats.Requested,
			stats.RequestsLimited, numbers)
	}
}

// TestHonestLossIsNotLimited loses 5 % of 50 Mbit/s, in bursts of 8 packets, and once everything for 200 ms.
func TestHonestLossIsNotLimited(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{rtt: 20 * time.Millisecond})
	p := r.publish(i, 10, volumetric.MIMEVolumetric)
	lost := make(map[uint16][]byte)
	asks, losses, burst := 0, 0, 0
	for frame := range 120 {
		p.Next()
		for _, packet := range p.Packets(175 * 1144) {
			if burst == 0 && random.IntN(152) == 0 {
				burst = 8
			}
			if out := frame >= 60 && frame < 66; out || burst > 0 {
				burst = max(burst-1, 0)
				losses++
				lost[uint16(packet[2])<<8|uint16(packet[3])] = packet
				continue
			}
			p.Send(r.now, packet)
		}
		for _, number := range asked(r.stepped(i, 33*time.Millisecond-time.Millisecond), 10) {
			asks++
			// A retransmission is lost with the same probability.
			if packet := lost[number]; packet != nil && random.IntN(20) > 0 {
				p.Repair(r.now, packet)
				delete(lost, number)
			}
		}
	}
	stats := r.stats()
	t.Logf("%d packets lost, %d requests, %d recovered, %d given up", losses, asks, stats.Recovered, stats.Lost)
	if stats.RequestsLimited != 0 {
		t.Errorf("%d requests were left out, expected none", stats.RequestsLimited)
	}
	if losses < 1500 || float64(stats.Recovered) < 0.99*float64(losses) {
		t.Errorf("%d of %d losses were repaired, expected at least 99 %%", stats.Recovered, losses)
	}
}

// TestJumpsAreNotNoticed lets numbers jump by more than is requested: in media, in retransmissions, and in the claimed
// lengths of frames.
func TestJumpsAreNotNoticed(t *testing.T) {
	const packets = 200
	jump := func(by uint16) func(p *publisher) [][]byte {
		return func(p *publisher) [][]byte {
			p.Sequence += by
			return p.Packets(10)
		}
	}
	for name, test := range map[string]struct {
		jump     int
		apart    time.Duration
		repaired bool
		packets  func(p *publisher) [][]byte
	}{
		"far jumps":      {16_000, 4 * time.Millisecond, false, jump(16_000)},
		"near jumps":     {3000, 4 * time.Millisecond, false, jump(3000)},
		"retransmission": {16_000, 4 * time.Millisecond, true, jump(16_000)},
		// Every other frame claims to be long, and the next one reuses its numbers, after a silence that does not match
		// the length of frames.
		"ends of frames": {14_000, 300 * time.Millisecond, false, func(p *publisher) [][]byte {
			if p.Number%2 == 0 {
				return p.Packets(10)
			}
			d := payload.Descriptor{Frame: p.Number, Source: 14_000, Length: 14_000 * payload.FragmentSize}
			body := make([]byte, payload.DescriptorSize+payload.FragmentSize)
			if _, err := d.MarshalTo(body); err != nil {
				p.T.Fatal(err)
			}
			return [][]byte{p.Packet(body, false)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			i := r.ingress(&fakePeer{rtt: 20 * time.Millisecond})
			p := r.publish(i, 10, volumetric.MIMEVolumetric)
			p.Next()
			p.Send(r.now, p.Packets(10)...)
			begin := r.now
			for range packets {
				p.Next()
				if made := test.packets(p); test.repaired {
					p.Repair(r.now, made...)
				} else {
					p.Send(r.now, made...)
				}
				r.stepped(i, test.apart)
			}
			missing := streamOf(p.track).missing
			earned := packets + int(requestRate*r.now.Sub(begin).Seconds())
			if noticed := missing.Stats().Missing; noticed > requestBurst+uint64(earned) {
				t.Errorf("%d packets were noticed as missing, expected at most %d", noticed, requestBurst+earned)
			}
			if got := r.stats().RequestsLimited; got < uint64(packets*test.jump/4) {
				t.Errorf("%d packets count as not asked for, expected most of %d", got, packets*test.jump)
			}
			// A loss is repaired all the same.
			for range 100 {
				p.Next()
				p.Send(r.now, p.Packets(10)...)
				r.stepped(i, 4*time.Millisecond)
			}
			p.Next()
			lost := p.Packets(5 * 1144)
			p.Send(r.now, lost[0])
			p.Send(r.now, lost[2:]...)
			if got := asked(r.stepped(i, 20*time.Millisecond), 10); len(got) == 0 {
				t.Error("a loss after that is not asked for")
			}
		})
	}
}
