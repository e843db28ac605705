package egress

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/race"
)

// TestPacedAtRandom lets tracks of two codecs lose, delay and repair packets, while receivers switch tracks, get
// estimates, windows and smooth paths, and close. The packets of a slot have no gap, no repeat, and whole frames only.
// At the end no packet is referenced.
func TestPacedAtRandom(t *testing.T) {
	race.SkipSequential(t)
	const seeds = 24
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 7))
		mode := []pacing.Mode{pacing.Default, "spread:20ms", pacing.Burst5ms, "spread:100ms"}[seed%4]
		r := newPacedRig(t, mode, func(c *rigConfig) { c.Writers = 2 })
		i := r.ingress(&fakePeer{})
		publishers := []*publisher{
			r.publish(i, 10, volumetric.MIMEVolumetric), r.publish(i, 20, volumetric.MIMEVolumetric),
			r.publish(i, 30, volumetric.MIMEVolumetric),
			r.publish(i, 40, volumetric.MIMEOpaque),
		}
		var subscribers []*subscriber
		for n := range 4 {
			subscribers = append(subscribers, r.subscribe(uint32(1000+10*n), volumetric.KindVideo))
		}
		limited, changing := seed%3 == 1, seed%3 == 2
		if limited {
			r.limit(subscribers[0], 2_000_000)
		}
		for range 150 {
			if changing {
				r.pace(subscribers[:1], pacing.Path{Estimate: 2_000_000 << random.IntN(5), Smooth: random.IntN(2) == 0,
					Window: random.IntN(3) * 50_000})
				subscribers[0].receiver.path.sender.SetInFlight(random.IntN(60_000))
			}
			for _, s := range subscribers {
				if random.IntN(5) == 0 {
					p := publishers[random.IntN(len(publishers))]
					group := uint64(1)
					if p.SSRC == 40 {
						group = 2
					}
					s.slot.Select(p.track, group, r.now)
				}
			}
			r.frames(random, publishers)
		}
		r.ticks(2 * time.Second)
		for n, s := range subscribers {
			sent := s.outlet.sent()
			whole := checkWhole(t, s)
			checkContinuous(t, sent)
			if least := 100; whole < least && (n > 0 || !limited && !changing) {
				t.Errorf("seed %d: %d frames were sent to receiver %d, expected at least %d", seed, whole, n, least)
			}
		}
		stats := r.engine.Stats()
		if stats.DroppedLate+stats.DroppedOverrun != 0 || !limited && !changing && stats.DroppedBudget != 0 {
			t.Errorf("seed %d: dropped %d late, %d overrun, %d over budget", seed, stats.DroppedLate,
				stats.DroppedOverrun, stats.DroppedBudget)
		}
		r.frames(random, publishers)
		subscribers[0].receiver.Close()
		r.run()
		publishers[0].track.Close()
		r.ticks(time.Second)
		for _, s := range subscribers {
			if held := s.receiver.path.sender.Held() + s.slot.held.Len(); held != 0 {
				t.Errorf("seed %d: %d packets wait", seed, held)
			}
		}
		checkReferences(t, publishers)
	}
}

// frames publishes a frame of each track over half an interval. One packet in 40 is lost and repaired 0 to 30 ms later,
// also out of order.
func (r *rig) frames(random *rand.Rand, publishers []*publisher) {
	type owed struct {
		p      *publisher
		packet []byte
	}
	var late []owed
	for _, p := range publishers {
		p.Next()
		for k, packet := range p.Packets(1144 * (1 + random.IntN(40))) {
			switch {
			case p.SSRC != 40 && k > 0 && random.IntN(40) == 0:
				late = append(late, owed{p, packet})
			default:
				p.Send(r.now, packet)
			}
			if random.IntN(4) == 0 {
				r.ticks(time.Duration(random.IntN(400)) * time.Microsecond)
			}
			if len(late) > 0 && random.IntN(8) == 0 {
				late[0].p.Repair(r.now, late[0].packet)
				late = late[1:]
			}
		}
	}
	for _, o := range late {
		r.ticks(time.Duration(random.IntN(8000)) * time.Microsecond)
		o.p.Repair(r.now, o.packet)
	}
	r.ticks(time.Duration(8+random.IntN(16)) * time.Millisecond)
}

// checkWhole fails if a slot has sent a part of a frame, and counts the frames.
func checkWhole(t *testing.T, s *subscriber) (whole int) {
	t.Helper()
	type frame struct {
		number, timestamp uint32
		payloadType       uint8
	}
	counts, sizes := make(map[frame]int), make(map[frame]int)
	for _, p := range s.outlet.sent() {
		d := descriptorOf(t, p)
		f := frame{d.Frame, p.Timestamp, p.PayloadType}
		counts[f]++
		sizes[f] = d.Packets()
	}
	for f, n := range counts {
		if n != sizes[f] {
			t.Errorf("frame %+v was sent in %d packets, expected %d", f, n, sizes[f])
		}
	}
	return len(counts)
}

// checkReferences fails if anything but the cache references a packet of the cache.
func checkReferences(t *testing.T, publishers []*publisher) {
	t.Helper()
	for _, p := range publishers {
		log := p.track.Log()
		for position := log.Tail(); position < log.Head(); position++ {
			packet := log.At(position)
			if packet == nil {
				t.Fatalf("packet %d is not in the cache", position)
			}
			packet.Release()
			if n := packet.References(); n != 1 {
				t.Errorf("packet %d has %d references, expected the cache's", position, n)
			}
		}
	}
}
