package egress

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/race"
)

// pace makes a path known to the receivers of subscribers, without an estimator.
func (r *rig) pace(subscribers []*subscriber, known pacing.Path) {
	for _, s := range subscribers {
		w := s.receiver.writer
		s.receiver.path.sender.SetPath(known, w.at)
		w.reschedule(s.receiver)
	}
}

// TestSmoothReceiversShareTicks has three receivers with smooth paths, two of them of half the rate. Their packets
// leave in the same ticks.
func TestSmoothReceiversShareTicks(t *testing.T) {
	r := newPacedRig(t, pacing.Default, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	subscribers := r.subscribeAll(3, p)
	r.pace(subscribers[:1], pacing.Path{Estimate: 100_000_000, Smooth: true})
	r.pace(subscribers[1:], pacing.Path{Estimate: 50_000_000, Smooth: true})
	r.ticks(20 * time.Millisecond)
	p.Next()
	p.Send(r.now, p.Packets(22*1144)...)
	// At 100 Mbit/s, 1.05 times the estimate are 5.4 packets of 1,224 bytes in 0.5 ms.
	if got, want := r.departures(subscribers[0]), "0s: 6\n500µs: 5\n1ms: 6\n1.5ms: 5\n"; got != want {
		t.Errorf("packets left at\n%s, expected\n%s", got, want)
	}
	for _, s := range subscribers[1:] {
		if runs := s.peer.takeRuns(); !slices.Equal(runs, []int{3, 3, 3, 2, 3, 3, 2, 3}) {
			t.Errorf("packets left in runs of %v", runs)
		}
	}
	for _, s := range subscribers {
		checkContinuous(t, s.outlet.sent())
		checkWhole(t, s)
	}
}

// TestSpacedReceiversAreBounded has four receivers at 60 Mbit/s whose reports claim that their packets must leave one
// by one. The bound of a writer admits one of them. The others, in ticks of 0.5 ms, cost no more than other smooth
// paths.
func TestSpacedReceiversAreBounded(t *testing.T) {
	r := newPacedRig(t, pacing.Default, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	subscribers := r.subscribeAll(4, p)
	claim := func(s *subscriber) {
		e := &toldEstimator{stats: congestion.Stats{Estimate: 60e6, DelayBased: 60e6, Smooth: true, Spaced: true}}
		e.Estimator = congestion.New(congestion.GCC, r.engine.cfg.Congestion, r.now)
		s.receiver.path.sender.Start(sender.NewByStream(), e, r.now)
		s.receiver.path.sender.Learn([]feedback.PacketResult{{Size: 1200, Sent: r.now, Received: true}}, r.now, r.now)
		s.receiver.path.sender.Consult(r.now)
	}
	send := func() (wakes int) {
		p.Next()
		p.Send(r.now, p.Packets(200*1144)...)
		w := r.engine.writers[0]
		for r.run(); len(w.paced) > 0; r.run() {
			r.now = r.now.Add(idleOf(w))
			wakes++
		}
		r.ticks(20 * time.Millisecond)
		return wakes
	}
	alone := func(s *subscriber) bool { return slices.Max(s.peer.takeRuns()) == 1 }
	for _, s := range subscribers {
		claim(s)
	}
	for round := range 2 {
		// The frame takes 200 ticks of at least 50 µs, and 67 ticks of 0.5 ms.
		if wakes := send(); wakes > 200+70 {
			t.Errorf("round %d: 200 packets took %d wake-ups", round, wakes)
		}
		for i, s := range subscribers[round:] {
			if one := alone(s); one != (i == 0) {
				t.Errorf("round %d: packets of receiver %d leave one by one: %t", round, round+i, one)
			}
		}
		// The next receiver takes the place of one that has left.
		subscribers[round].receiver.Close()
		r.run()
		subscribers[round+1].receiver.path.sender.Consult(r.now)
	}
}

// TestWindowBoundsFrames sends frames of 51 kB to a receiver with a window of 105 kB and a round trip of 20 ms. All
// frames fit. Without reports the window is full after two frames: the others are dropped whole, except one after 200
// ms and one 400 ms later.
func TestWindowBoundsFrames(t *testing.T) {
	for _, smooth := range []bool{false, true} {
		c := newConference(t, 200e6, nil)
		c.frames(time.Second, 2e6, nil)
		e := &toldEstimator{stats: congestion.Stats{Estimate: 60e6, DelayBased: 60e6, Smooth: smooth, Window: 105_000}}
		e.Estimator = congestion.New(congestion.GCC, c.engine.cfg.Congestion, c.now)
		c.receiver.path.sender.Start(c.receiver.path.departures.history, e, c.now)
		send := func(frames int) (left, dropped int) {
			before, sent := c.dropped()[DroppedBudget], checkWhole(t, c.subscriber)
			if before != 0 {
				t.Errorf("%d frames were dropped between two parts of the test", before)
			}
			for range frames {
				c.publisher.Next()
				c.publisher.Send(c.now, c.publisher.Packets(42*1144)...)
				c.link.pass(frameInterval)
			}
			c.link.pass(frameInterval)
			return checkWhole(t, c.subscriber) - sent, c.dropped()[DroppedBudget]
		}
		c.dropped()
		if left, dropped := send(30); left != 30 || dropped != 0 {
			t.Errorf("smooth %t: %d of 30 frames left, %d were dropped", smooth, left, dropped)
		}
		c.link.deaf = true
		if left, dropped := send(30); left+dropped != 30 || left < 3 || left > 5 {
			t.Errorf("smooth %t: %d of 30 frames left without reports, %d were dropped", smooth, left, dropped)
		}
		c.link.deaf = false
		c.link.pass(time.Second)
		if left, dropped := send(30); left < 28 || left+dropped != 30 {
			t.Errorf("smooth %t: %d of 30 frames left after reports, %d were dropped", smooth, left, dropped)
		}
		checkContinuous(t, c.outlet.sent())
	}
}

// TestMemoryOfSmoothReceivers compares receivers at 50 Mbit/s with L4S, a smooth path and a window with receivers of
// GCC, in the middle of a frame. The histories of sent packets hold what is in flight for 50 ms.
func TestMemoryOfSmoothReceivers(t *testing.T) {
	race.SkipSequential(t)
	const receivers, perFrame, more = 40, 175, 10 << 10
	each := func(algorithm congestion.Algorithm, known pacing.Path, history func() *sender.History) int64 {
		before := inUse()
		l := newPacedLoop(t, receivers, perFrame, known)
		for range 30 {
			l.frame()
		}
		for _, r := range l.receivers {
			h, now := history(), l.rig.now
			r.path.sender.Start(h, congestion.New(algorithm, l.rig.engine.cfg.Congestion, now), now)
			r.path.sender.SetPath(known, r.writer.at)
			for n := range uint16(perFrame * 3 / 2) {
				r.path.sender.Sent(1000, n, 1200, feedback.Media, now)
			}
		}
		l.arrive()
		l.rig.run()
		held := l.receivers[0].path.sender.Held()
		if held == 0 {
			t.Errorf("no packet waits")
		}
		used := (inUse() - before) / receivers
		t.Logf("a receiver takes %d bytes, %d packets wait", used, held)
		runtime.KeepAlive(l)
		return used
	}
	usual := each(congestion.GCC, pacing.Path{Estimate: 55_000_000},
		func() *sender.History { return sender.NewNumbered(0) })
	smooth := each(congestion.L4S, pacing.Path{Estimate: 55_000_000, Smooth: true, Window: 1_200_000},
		sender.NewByStream)
	if smooth > usual+more {
		t.Errorf("a receiver with L4S takes %d bytes, one with GCC %d, expected at most %d more", smooth, usual, more)
	}
}

// BenchmarkSmooth compares forwarding to ten receivers at 50 Mbit/s on smooth paths with the usual spreading, in
// alternate turns of some frames. smooth/usual is the median over the turns of the ratio of the times per packet.
func BenchmarkSmooth(b *testing.B) {
	const receivers, perFrame, turn = 10, 175, 4
	usual := pacing.Path{Estimate: 55_000_000}
	smooth := pacing.Path{Estimate: 55_000_000, Smooth: true}
	loops := [2]*pacedLoop{newPacedLoop(b, receivers, perFrame, usual), newPacedLoop(b, receivers, perFrame, smooth)}
	for range 60 {
		loops[0].frame()
		loops[1].frame()
	}
	flushes := [2]int{loops[0].flushes, loops[1].flushes}
	var took [2][]float64
	var ratios []float64
	b.ReportAllocs()
	b.ResetTimer()
	for n := range b.N {
		var times [2]float64
		for i := range loops {
			at := (i + n) % 2
			begin := time.Now()
			for range turn {
				loops[at].frame()
			}
			times[at] = float64(time.Since(begin).Nanoseconds()) / (turn * perFrame * receivers)
			took[at] = append(took[at], times[at])
		}
		ratios = append(ratios, times[1]/times[0])
	}
	b.StopTimer()
	packets := float64(b.N * turn * perFrame * receivers)
	b.ReportMetric(packets/float64(loops[0].flushes-flushes[0]), "usual-packets/flush")
	b.ReportMetric(packets/float64(loops[1].flushes-flushes[1]), "smooth-packets/flush")
	b.ReportMetric(median(took[0]), "usual-ns/packet")
	b.ReportMetric(median(took[1]), "smooth-ns/packet")
	b.ReportMetric(median(ratios), "smooth/usual")
}

// pacedLoop forwards frames to receivers with the same path.
type pacedLoop struct {
	*loop
	flushes int
}

func newPacedLoop(b testing.TB, receivers, perFrame int, known pacing.Path) *pacedLoop {
	l := &pacedLoop{}
	l.loop = newLoop(b, receivers, perFrame, pacing.Default, false, &l.flushes)
	for _, r := range l.receivers {
		r.path.sender.SetPath(known, r.writer.at)
	}
	return l
}
