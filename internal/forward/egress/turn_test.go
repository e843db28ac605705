package egress

import (
	"sync"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/forward/turn"
	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

// TestReadersShareWriters lets several readers deliver bursts at once to shared writers, and checks that no packet is
// lost or repeated.
func TestReadersShareWriters(t *testing.T) {
	const publishers, bursts, fragments = 4, 150, 4
	// No frame is too late, even on a busy machine.
	r := live(t, func(c *rigConfig) { c.Writers, c.Pacing, c.MaxLag, c.CacheAge = 2, "off", time.Hour, time.Hour })
	var subscribers []*subscriber
	var sending sync.WaitGroup
	for n := range publishers {
		p := r.publish(r.engine.NewIngress(&fakePeer{}), uint32(10*(n+1)), volumetric.MIMEVolumetric)
		for m := range 3 {
			s := r.subscribe(uint32(1000*(n+1)+10*m), volumetric.KindVideo)
			s.slot.Select(p.track, uint64(n+1), time.Now())
			subscribers = append(subscribers, s)
			wait.Until(t, "the slot is fed", func() bool {
				p.Next()
				p.Send(time.Now(), p.Packets(1000)...)
				return len(s.outlet.sent()) > 0
			})
		}
		sending.Go(func() {
			for range bursts {
				p.Next()
				p.Send(time.Now(), p.Packets(fragments*1000)...)
			}
		})
	}
	sending.Wait()
	for _, s := range subscribers {
		var last int
		wait.Until(t, "nothing comes any more", func() bool {
			now := len(s.outlet.sent())
			done := now == last && now >= bursts*fragments
			last = now
			return done
		})
		checkContinuous(t, s.outlet.sent())
	}
	for _, w := range r.engine.writers {
		wait.Until(t, "the turn is free", func() bool { return w.turn.Free() })
	}
}

// TestTurnOfAStoppedWriter takes turns while the engine closes.
func TestTurnOfAStoppedWriter(t *testing.T) {
	for range 20 {
		cfg := defaultConfig()
		cfg.Writers = 1
		r := &rig{t: t, engine: newEngine(cfg, time.Now)}
		r.engine.Run()
		p := r.publish(r.engine.NewIngress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
		s := r.subscribe(1000, volumetric.KindVideo)
		s.slot.Select(p.track, 1, time.Now())
		wait.Until(t, "the writer follows", func() bool { return p.track.Followers() == 1 })
		var sending sync.WaitGroup
		sending.Go(func() {
			for range 20 {
				p.Next()
				p.Send(time.Now(), p.Packets(4000)...)
			}
		})
		r.engine.Close()
		sending.Wait()
	}
}

// slowOutlet takes time for each packet.
type slowOutlet struct {
	nullOutlet
	rig   *rig
	takes time.Duration
	taken *int
}

func (o slowOutlet) Queue(*rtp.Header, []byte) error {
	*o.taken++
	o.rig.now = o.rig.now.Add(o.takes)
	return nil
}

// slow adds receivers of a track that take the given time per packet. taken counts the packets.
func (r *rig) slow(n int, p *publisher, takes time.Duration) (taken *int) {
	taken = new(int)
	for k := range n {
		outlet := slowOutlet{nullOutlet{uint32(1000 + 10*k)}, r, takes, taken}
		r.engine.NewReceiver(&nullPeer{flushes: new(int)}, 0).AddSlot(outlet, volumetric.KindVideo).Select(p.track, 1,
			r.now)
	}
	r.run()
	return taken
}

// TestReadersGoOnReading delivers bursts that take much longer than InlineTime. The reader works until the limit and
// hands over the rest. It does short bursts alone.
func TestReadersGoOnReading(t *testing.T) {
	const packets, receivers, each = 60, 50, time.Microsecond
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	taken := r.slow(receivers, p, each)
	w := r.engine.writers[0]
	// burst sends a burst while the writer sleeps, and returns the share that the reader did, and whether the writer
	// was woken for the rest.
	burst := func(packets int) (share float64, woken bool) {
		t.Helper()
		w.turn.Release()
		before, begin := *taken, r.now
		p.Next()
		p.Send(r.now, p.Packets(packets*1144)...)
		did := *taken - before
		if took := r.now.Sub(begin); took > turn.InlineTime+burstWrites*each*11/10 {
			t.Errorf("the reader worked for %v", took)
		}
		woken = w.turn.Receive()
		r.run()
		if all := *taken - before; all != packets*receivers {
			t.Fatalf("%d packets were written of a burst of %d to %d receivers", all, packets, receivers)
		}
		return float64(did) / float64(packets*receivers), woken
	}
	for range 3 {
		if share, woken := burst(packets); share < 0.3 || share > 0.6 || !woken {
			t.Errorf("the reader did %v of a long burst, writer woken: %t", share, woken)
		}
	}
	if share, woken := burst(2); share != 1 || woken {
		t.Errorf("the reader did %v of a short burst, writer woken: %t", share, woken)
	}
}

// brokenOutlet panics on each packet.
type brokenOutlet struct{ nullOutlet }

func (brokenOutlet) Queue(*rtp.Header, []byte) error { panic("broken") }

// TestWritersWorkIsNotGuarded lets the goroutine of one client panic in work for all receivers of a writer.
func TestWritersWorkIsNotGuarded(t *testing.T) {
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	r.engine.NewReceiver(&nullPeer{flushes: new(int)}, 0).AddSlot(brokenOutlet{nullOutlet{1000}},
		volumetric.KindVideo).Select(p.track, 1, r.now)
	r.run()
	r.engine.writers[0].turn.Release()
	guard := panics.NewGuard(func(panics.Report) {}, "publisher")
	defer func() {
		if value := recover(); value == nil || guard.Count("publisher") != 0 {
			t.Errorf("the panic is %v, %d were recovered from, expected it to end the process", value,
				guard.Count("publisher"))
		}
	}()
	defer guard.Recover("publisher", func() { t.Error("the publisher is ended") })
	p.Next()
	p.Send(r.now, p.Packets(1000)...)
}

// TestAReaderSharesItsTime sends a burst to two writers, the first of which uses all of the reader's InlineTime.
func TestAReaderSharesItsTime(t *testing.T) {
	r := newRig(t, func(c *rigConfig) { c.Writers = 2 })
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	taken := r.slow(100, p, time.Microsecond)
	for _, w := range r.engine.writers {
		w.turn.Release()
	}
	p.Next()
	p.Send(r.now, p.Packets(60*1144)...)
	for n, w := range r.engine.writers {
		if !w.turn.Receive() {
			t.Errorf("writer %d was not woken", n)
		}
	}
	if most := int(turn.InlineTime/time.Microsecond) + burstWrites*11/10; *taken > most {
		t.Errorf("the reader wrote %d packets of 6,000, a microsecond each, expected at most %d", *taken, most)
	}
	r.run()
	if *taken != 6000 {
		t.Errorf("%d packets were written, expected 6,000", *taken)
	}
}

// TestAWriterThatIsNotFinished sends a burst to two writers, of which the second takes much longer than the rest of
// InlineTime. The next burst is left to its goroutine at once.
func TestAWriterThatIsNotFinished(t *testing.T) {
	r := newRig(t, func(c *rigConfig) { c.Writers = 2 })
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	writers := r.engine.writers
	taken := map[*writer]*int{writers[0]: new(int), writers[1]: new(int)}
	for n := range 100 {
		receiver := r.engine.NewReceiver(&nullPeer{flushes: new(int)}, 0)
		takes := time.Microsecond
		if receiver.writer == writers[0] {
			takes /= 10
		}
		outlet := slowOutlet{nullOutlet{uint32(1000 + 10*n)}, r, takes, taken[receiver.writer]}
		receiver.AddSlot(outlet, volumetric.KindVideo).Select(p.track, 1, r.now)
	}
	r.run()
	// burst returns how many of 3,000 packets of each writer a reader wrote.
	burst := func() (first, second int) {
		t.Helper()
		for _, w := range writers {
			w.turn.Release()
		}
		before := [2]int{*taken[writers[0]], *taken[writers[1]]}
		p.Next()
		p.Send(r.now, p.Packets(60*1144)...)
		first, second = *taken[writers[0]]-before[0], *taken[writers[1]]-before[1]
		if a, b := writers[0].turn.Receive(), writers[1].turn.Receive(); a || !b {
			t.Errorf("the first writer was woken: %t, the second: %t", a, b)
		}
		r.run()
		if n := *taken[writers[1]] - before[1]; n != 3000 {
			t.Errorf("the second writer wrote %d packets, expected 3,000", n)
		}
		return first, second
	}
	if first, second := burst(); first != 3000 || second == 0 || second > 1300 {
		t.Errorf("the reader wrote %d packets for the first writer and %d for the second", first, second)
	}
	if first, second := burst(); first != 3000 || second != 0 {
		t.Errorf("then the reader wrote %d packets for the first writer and %d for the second", first, second)
	}
}
