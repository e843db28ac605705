package forward

import (
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestReadersShareWriters has several readers bring bursts at once, for writers that all of them serve, and looks that nobody loses or repeats anything.
func TestReadersShareWriters(t *testing.T) {
	const publishers, bursts, fragments = 4, 150, 4
	r := live(t, func(c *Config) { c.Writers, c.Pacing = 2, "off" })
	var subscribers []*subscriber
	var sending sync.WaitGroup
	for n := range publishers {
		p := r.publish(r.engine.NewIngress(&fakePeer{}), uint32(10*(n+1)), volumetric.MIMEVolumetric)
		for m := range 3 {
			s := r.subscribe(uint32(1000*(n+1)+10*m), volumetric.KindVideo)
			s.slot.Select(p.track, uint64(n+1), time.Now())
			subscribers = append(subscribers, s)
			eventually(t, "the slot is fed", func() bool {
				p.next()
				p.send(time.Now(), p.packets(1000)...)
				return len(s.outlet.sent()) > 0
			})
		}
		sending.Go(func() {
			for range bursts {
				p.next()
				p.send(time.Now(), p.packets(fragments*1000)...)
			}
		})
	}
	sending.Wait()
	for _, s := range subscribers {
		var last int
		eventually(t, "nothing comes any more", func() bool {
			now := len(s.outlet.sent())
			done := now == last && now >= bursts*fragments/2
			last = now
			return done
		})
		checkContinuous(t, s.outlet.sent())
	}
	for _, w := range r.engine.writers {
		eventually(t, "the turn is free", func() bool { return w.turn.free.Load() })
	}
}

// TestTurnOfAStoppedWriter takes turns while the engine closes.
func TestTurnOfAStoppedWriter(t *testing.T) {
	for range 20 {
		cfg := DefaultConfig()
		cfg.Writers = 1
		r := &rig{t: t, engine: NewEngine(cfg)}
		p := r.publish(r.engine.NewIngress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
		s := r.subscribe(1000, volumetric.KindVideo)
		s.slot.Select(p.track, 1, time.Now())
		eventually(t, "the writer follows", func() bool { return len(*p.track.followers.Load()) == 1 })
		var sending sync.WaitGroup
		sending.Go(func() {
			for range 20 {
				p.next()
				p.send(time.Now(), p.packets(4000)...)
			}
		})
		r.engine.Close()
		sending.Wait()
	}
}
