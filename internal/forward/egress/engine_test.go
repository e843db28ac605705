package egress

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// live returns an engine with its goroutines, in real time.
func live(t *testing.T, change func(*rigConfig)) *rig {
	t.Helper()
	cfg := defaultConfig()
	if change != nil {
		change(&cfg)
	}
	if cfg.Writers == 0 {
		cfg.Writers = runtime.GOMAXPROCS(0)
	}
	r := &rig{t: t, engine: newEngine(cfg, time.Now)}
	r.engine.Run()
	t.Cleanup(r.engine.Close)
	return r
}

// TestSlotsOfTheLastReceiver: a writer that loses its last receiver has no active slots any more, although it sleeps
// from then on.
func TestSlotsOfTheLastReceiver(t *testing.T) {
	r := live(t, func(c *rigConfig) { c.Writers = 1 })
	p := r.publish(r.engine.NewIngress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.slot.Select(p.track, 1, time.Now())
	wait.Until(t, "the slot is active", func() bool {
		p.Next()
		p.Send(time.Now(), p.Packets(1000)...)
		return r.engine.Stats().ActiveSlots == 1
	})
	s.receiver.Close()
	wait.Until(t, "no slot is active", func() bool { return r.engine.Stats().ActiveSlots == 0 })
}

// TestBlockedOutlet blocks one receiver of one publisher. The receivers of the other writer get all packets of other
// publishers, whose readers are never delayed.
func TestBlockedOutlet(t *testing.T) {
	// No frame is too late, even on a busy machine.
	r := live(t, func(c *rigConfig) { c.Writers, c.Pacing, c.MaxLag, c.CacheAge = 2, pacing.Off, time.Hour, time.Hour })
	stuck := r.publish(r.engine.NewIngress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	p := r.publish(r.engine.NewIngress(&fakePeer{}), 20, volumetric.MIMEVolumetric)
	blocked, free := r.subscribe(1000, volumetric.KindVideo), r.subscribe(2000, volumetric.KindVideo)
	if blocked.receiver.writer == free.receiver.writer {
		t.Fatal("both receivers share a writer though there are two")
	}
	second := r.engine.NewReceiver(blocked.peer, 0).AddSlot(newFakeOutlet(blocked.peer, 3000), volumetric.KindVideo)
	if second.receiver.writer != blocked.receiver.writer {
		second.receiver.Close()
		second = blocked.receiver.AddSlot(newFakeOutlet(blocked.peer, 3000), volumetric.KindVideo)
	}
	blocked.outlet.gate.Lock()
	blocked.slot.Select(stuck.track, 1, time.Now())
	second.Select(p.track, 1, time.Now())
	free.slot.Select(p.track, 1, time.Now())
	wait.Until(t, "all follow", func() bool { return stuck.track.Followers() == 1 && p.track.Followers() == 2 })
	var sending sync.WaitGroup
	sending.Go(func() {
		stuck.Next()
		stuck.Send(time.Now(), stuck.Packets(4000)...)
	})
	wait.Until(t, "the writer is at work", func() bool { return !blocked.receiver.writer.turn.Free() })
	for range 100 {
		p.Next()
		p.Send(time.Now(), p.Packets(4000)...)
	}
	wait.Until(t, "the free receiver got everything", func() bool { return len(free.outlet.sent()) == 400 })
	if n := len(blocked.outlet.sent()); n != 0 {
		t.Errorf("the blocked receiver got %d packets", n)
	}
	blocked.outlet.gate.Unlock()
	wait.Until(t, "the blocked receiver goes on", func() bool { return len(blocked.outlet.sent()) > 0 })
	sending.Wait()
	checkContinuous(t, free.outlet.sent())
}

// TestAsksThePublisherInTime loses a packet in real time, repairs the packet as the NACK requests, and reads the
// counters.
func TestAsksThePublisherInTime(t *testing.T) {
	r := live(t, nil)
	peer := &fakePeer{rtt: 10 * time.Millisecond}
	i := r.engine.NewIngress(peer)
	p := r.publish(i, 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.slot.Select(p.track, 1, time.Now())
	wait.Until(t, "the writer follows", func() bool { return p.track.Followers() == 1 })
	p.Next()
	packets := p.Packets(10 * 1144)
	p.Send(time.Now(), packets[:3]...)
	p.Send(time.Now(), packets[4:]...)
	var repaired bool
	wait.Until(t, "the publisher is asked and the slot gets all", func() bool {
		for _, packet := range peer.take() {
			if nack, ok := packet.(*rtcp.TransportLayerNack); ok && !repaired {
				repaired = true
				if nack.Nacks[0].PacketID != p.Sequence-7 {
					t.Errorf("asked for %d, expected %d", nack.Nacks[0].PacketID, p.Sequence-7)
				}
				p.Repair(time.Now(), packets[3])
			}
		}
		return len(s.outlet.sent()) == 10
	})
	checkContinuous(t, s.outlet.sent())
	wait.Until(t, "the counts", func() bool {
		stats := r.engine.Stats()
		return stats.NACKsSent >= 1 && stats.Recovered == 1 && stats.Sent.Media.Packets == 10 &&
			stats.SwitchDelay.Count() == 1
	})
}

// openTracks are the tracks of a test.
type openTracks struct {
	mu   sync.Mutex
	list []*track.Track
}

func (o *openTracks) add(t ...*track.Track) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, t...)
}

// any returns one of the tracks, or now and then nil.
func (o *openTracks) any(random *rand.Rand) *track.Track {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.list) == 0 || random.IntN(10) == 0 {
		return nil
	}
	return o.list[random.IntN(len(o.list))]
}

// TestEverythingAtOnce calls all methods from many goroutines while packets flow. It serves the race detector, and
// checks invariants that must hold under concurrency.
func TestEverythingAtOnce(t *testing.T) {
	r := live(t, func(c *rigConfig) { c.Writers, c.TrackCacheBytes, c.CacheBytes = 3, 1<<20, 4<<20 })
	var stopped atomic.Bool
	defer stopped.Store(true)
	var tracks openTracks
	var all sync.WaitGroup
	begun := time.Now()
	for n := range 3 {
		all.Go(func() { publishForever(r, uint32(100*(n+1)), &stopped, &tracks) })
	}
	for n := range 4 {
		all.Go(func() { receiveForever(r, uint32(1000+100*n), &stopped, &tracks) })
	}
	all.Go(func() {
		for !stopped.Load() {
			r.engine.Stats()
			time.Sleep(5 * time.Millisecond)
		}
	})
	wait.Until(t, "frames, retransmissions and switches", func() bool {
		stats := r.engine.Stats()
		return stats.FramesForwarded > 0 && stats.NACKed.Answered > 0 && stats.Switches > 0 &&
			time.Since(begun) > 1500*time.Millisecond
	})
	stopped.Store(true)
	all.Wait()
	for _, track := range tracks.list {
		track.Close()
	}
	wait.Until(t, "the writers release closed receivers and tracks", func() bool {
		stats := r.engine.Stats()
		return stats.Receivers == 0 && stats.CacheBytes == 0
	})
	if used := r.engine.budget.Used(); used != 0 {
		t.Errorf("%d bytes stay reserved", used)
	}
	stats := r.engine.Stats()
	if stats.Tracks != 0 || stats.Slots != 0 {
		t.Errorf("counts are %+v", stats)
	}
}

// receiveForever repeatedly adds a receiver, uses all its methods and closes the receiver.
func receiveForever(r *rig, ssrc uint32, stopped *atomic.Bool, tracks *openTracks) {
	random := rand.New(rand.NewPCG(uint64(ssrc), 9))
	for !stopped.Load() {
		s := r.subscribe(ssrc, volumetric.KindVideo)
		slots := []*Slot{s.slot}
		for k := range uint32(4) {
			slots = append(slots, s.receiver.AddSlot(newFakeOutlet(s.peer, ssrc+10+2*k), volumetric.KindVideo))
		}
		for range 100 {
			slots[random.IntN(len(slots))].Select(tracks.any(random), uint64(1+random.IntN(2)), time.Now())
			if sent := s.outlet.sent(); len(sent) > 0 {
				s.nack(r.t, time.Now(), sent[random.IntN(len(sent))].SequenceNumber, uint16(random.Uint32()))
			}
			s.rtcp(r.t, time.Now(), &rtcp.PictureLossIndication{MediaSSRC: ssrc})
			s.rtcp(r.t, time.Now(), &rtcp.ReceiverReport{Reports: []rtcp.ReceptionReport{{SSRC: ssrc,
				LastSenderReport: 7}}})
			s.receiver.TakeEvents(nil)
			time.Sleep(time.Millisecond)
		}
		for _, slot := range slots {
			slot.Stats()
		}
		checkNoRepeats(r.t, s)
		s.receiver.Close()
		s.slot.Select(tracks.any(random), 1, time.Now())
	}
}

// publishForever repeatedly publishes two tracks with some loss, and closes the connection and now and then a track.
func publishForever(r *rig, ssrc uint32, stopped *atomic.Bool, tracks *openTracks) {
	random := rand.New(rand.NewPCG(uint64(ssrc), 1))
	for !stopped.Load() {
		i := r.engine.NewIngress(&fakePeer{rtt: time.Millisecond})
		a, b := r.publish(i, ssrc, volumetric.MIMEVolumetric), r.publish(i, ssrc+10, volumetric.MIMEOpaque)
		tracks.add(a.track, b.track)
		for range 60 {
			a.Next()
			for _, packet := range a.Packets(6000) {
				if random.IntN(10) > 0 {
					a.Send(time.Now(), packet)
				}
			}
			b.Next()
			b.Send(time.Now(), b.Packet([]byte{1, 2, 3}, false), b.Packet([]byte{4, 5, 6}, true))
			b.report(time.Now(), time.Now())
			time.Sleep(time.Millisecond)
		}
		if track := tracks.any(random); track != nil && random.IntN(2) == 0 {
			track.Close()
		}
		i.Close()
		a.Send(time.Now(), a.Packets(100)...)
	}
}

// checkNoRepeats fails if a slot has sent a number twice.
func checkNoRepeats(t testing.TB, s *subscriber) {
	t.Helper()
	seen := make(map[uint16]bool)
	for _, p := range s.outlet.sent() {
		if seen[p.SequenceNumber] {
			t.Errorf("number %d was sent twice", p.SequenceNumber)
		}
		seen[p.SequenceNumber] = true
	}
}

// TestAfterClose calls all methods on a closed engine.
func TestAfterClose(t *testing.T) {
	r := live(t, nil)
	i := r.engine.NewIngress(&fakePeer{})
	p := r.publish(i, 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.slot.Select(p.track, 1, time.Now())
	r.engine.Close()
	r.engine.Close()
	p.Next()
	p.Send(time.Now(), p.Packets(100)...)
	s.slot.Select(p.track, 1, time.Now())
	s.nack(t, time.Now(), 1)
	s.receiver.Close()
	s.receiver.Close()
	i.Unbind(p.track)
	i.Close()
	p.track.Close()
	late := r.engine.NewIngress(&fakePeer{})
	late.Bind(10, 11, p.track)
	late.RTP(10, nil, forwardtest.InfoAt(time.Now()))
	late.Close()
	if n := r.engine.Stats().Ingresses; n != 0 {
		t.Errorf("%d ingresses are open", n)
	}
}

func TestReceiversSpreadOverWriters(t *testing.T) {
	r := newRig(t, func(c *rigConfig) { c.Writers = 4 })
	for n := range 40 {
		s := r.subscribe(uint32(1000+10*n), volumetric.KindVideo)
		for k := range n % 5 {
			s.receiver.AddSlot(newFakeOutlet(s.peer, uint32(5000+100*n+2*k)), volumetric.KindVideo)
		}
	}
	for _, w := range r.engine.writers {
		if load := w.load.Load(); load < 35 || load > 45 {
			t.Errorf("a writer has a load of %d, expected about a quarter of 160", load)
		}
	}
}

// TestEventsAreBounded does not take events.
func TestEventsAreBounded(t *testing.T) {
	l := eventList{notify: make(chan struct{}, 1)}
	for n := range maxEvents + 10 {
		l.add(Event{DroppedFrames: n})
	}
	<-l.notify
	events := l.take(nil)
	if len(events) != maxEvents || events[0].DroppedFrames != 10 || events[len(events)-1].DroppedFrames != maxEvents+9 {
		t.Errorf("%d events from %d on, expected the latest %d", len(events), events[0].DroppedFrames, maxEvents)
	}
	if again := l.take(events[:0]); len(again) != 0 {
		t.Errorf("%d events are told twice", len(again))
	}
}
