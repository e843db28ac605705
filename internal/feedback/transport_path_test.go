package feedback

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/race"
)

// TestTransportPath checks that the sender learns the exact fate of each packet on a path that loses, reorders and
// duplicates packets, over several wraps of the numbers: one final result for every packet up to the last that arrived.
func TestTransportPath(t *testing.T) {
	race.SkipSequential(t)
	for _, path := range []struct {
		name            string
		packets         int
		spacing         time.Duration
		loss            float64
		jitter          time.Duration // of every packet
		late, duplicate float64       // shares of packets that arrive 300 ms later, or twice
	}{
		{name: "clean", packets: 20_000, spacing: 100 * time.Microsecond},
		{name: "loss", packets: 210_000, spacing: 100 * time.Microsecond, loss: 0.05},
		{name: "half lost", packets: 40_000, spacing: 50 * time.Microsecond, loss: 0.5},
		{name: "all but lost", packets: 100_000, spacing: 100 * time.Microsecond, loss: 0.999},
		{name: "jitter", packets: 30_000, spacing: 200 * time.Microsecond, loss: 0.01, jitter: 20 * time.Millisecond},
		{name: "late", packets: 50_000, spacing: 100 * time.Microsecond, loss: 0.02, late: 0.01, duplicate: 0.02},
		{name: "slow", packets: 2000, spacing: 30 * time.Millisecond, loss: 0.1, jitter: 100 * time.Millisecond,
			duplicate: 0.1},
	} {
		t.Run(path.name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(7, uint64(path.packets)))
			p := newTransportPath(t, DefaultConfig().Transport, uint16(random.Uint32()))
			sent := 0
			var send func(now time.Time)
			send = func(now time.Time) {
				var arrives []time.Time
				// The first and the last packet arrive: reports cover the packets between them.
				if at := now.Add(30 * time.Millisecond); sent == 0 || sent == path.packets-1 {
					arrives = append(arrives, at.Add(path.jitter*time.Duration(sent/(path.packets-1))))
				} else if random.Float64() >= path.loss {
					at = at.Add(time.Duration(random.Float64() * float64(path.jitter)))
					if random.Float64() < path.late {
						at = at.Add(300 * time.Millisecond)
					}
					arrives = append(arrives, at)
					if random.Float64() < path.duplicate {
						arrives = append(arrives, at.Add(time.Duration(random.IntN(1000))*time.Millisecond))
					}
				}
				p.send(200+random.IntN(1000), now, arrives...)
				if sent++; sent < path.packets {
					p.at(now.Add(path.spacing/2+time.Duration(random.Int64N(int64(path.spacing)))), send)
				}
			}
			p.at(start, send)
			p.run()
			p.check(true)
			if p.history.InFlight() != 0 {
				t.Errorf("%d bytes in flight after the last report", p.history.InFlight())
			}
			seconds := p.now.Sub(start).Seconds()
			t.Logf("%.0f reports/s, %.2f bytes per packet; %+v; %+v", float64(p.reports)/seconds,
				float64(p.bytes)/float64(path.packets), p.history.Stats(),
				p.recorder.Stats())
		})
	}
}

// TestTransportPathLosesReports checks that no result is wrong when reports are lost, delayed and duplicated.
func TestTransportPathLosesReports(t *testing.T) {
	race.SkipSequential(t)
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			p := newTransportPath(t, DefaultConfig().Transport, uint16(random.Uint32()))
			p.back = func(now time.Time) (arrives []time.Time) {
				for random.Float64() < 0.8 && len(arrives) < 3 {
					arrives = append(arrives, now.Add(time.Duration(random.IntN(200))*time.Millisecond))
				}
				return arrives
			}
			for i := range 40_000 {
				at := start.Add(time.Duration(i) * 200 * time.Microsecond)
				lost := random.Float64() < 0.05
				p.at(at, func(now time.Time) {
					if lost {
						p.send(1200, now)
					} else {
						p.send(1200, now, now.Add(20*time.Millisecond+
							time.Duration(random.IntN(5000))*time.Microsecond))
					}
				})
			}
			p.run()
			p.check(false)
			stats := p.history.Stats()
			if stats.Received < 20_000 || stats.Unreported == 0 || stats.Unmatched == 0 || stats.Malformed != 0 {
				t.Errorf("%+v", stats)
			}
		})
	}
}

// TestTransportBursts sends frames of 1 Gbit/s in bursts, with loss. Every compound must stay within the limit (which
// the path checks), for any number of packets, and the reports must remain a small share.
func TestTransportBursts(t *testing.T) {
	race.SkipSequential(t)
	random := rand.New(rand.NewPCG(3, 3))
	p := newTransportPath(t, DefaultConfig().Transport, 0)
	sent := 0
	for frame := range 30 {
		// 3,333 packets of 1,250 bytes within 13 ms, 30 times per second.
		for i := range 3333 {
			at := start.Add(time.Duration(frame)*33*time.Millisecond + time.Duration(i)*4*time.Microsecond)
			lost := random.Float64() < 0.05 && sent > 0
			sent++
			p.at(at, func(now time.Time) {
				if lost {
					p.send(1250, now)
				} else {
					p.send(1250, now, now.Add(20*time.Millisecond+time.Duration(random.IntN(500))*time.Microsecond))
				}
			})
		}
	}
	p.run()
	p.check(true)
	if p.recorder.Stats().Dropped != 0 {
		t.Errorf("%+v", p.recorder.Stats())
	}
	// Packets that overtake each other take two bytes.
	if perPacket := float64(p.bytes) / float64(sent); perPacket > 2 {
		t.Errorf("%.2f bytes of reports per packet", perPacket)
	}
	t.Logf("%d packets, %d compounds of %d bytes", sent, p.reports, p.bytes/p.reports)
}
