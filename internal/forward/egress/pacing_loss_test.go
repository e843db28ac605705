package egress

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/race"
)

// TestWaitingPacketsAreReleased closes and cuts within frames.
func TestWaitingPacketsAreReleased(t *testing.T) {
	for name, end := range map[string]func(r *rig, p *publisher, s *subscriber){
		"receiver closed": func(_ *rig, _ *publisher, s *subscriber) { s.receiver.Close() },
		"track closed":    func(_ *rig, p *publisher, _ *subscriber) { p.track.Close() },
		"engine stopped":  func(r *rig, _ *publisher, _ *subscriber) { r.engine.writers[0].release() },
		"all left":        func(r *rig, _ *publisher, _ *subscriber) { r.ticks(time.Second) },
		"overrun":         func(_ *rig, _ *publisher, s *subscriber) { s.slot.attachments[0].follower.overrun(1) },
	} {
		r := newPacedRig(t, pacing.Default, nil)
		p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
		s := r.subscribeAll(1, p)[0]
		p.Next()
		p.Send(r.now, p.Packets(42*1144)...)
		r.run()
		var waiting []*packetlog.Packet
		for i := range s.slot.held.Len() {
			waiting = append(waiting, s.slot.held.At(i).packet)
		}
		references := make([]int32, len(waiting))
		for i, packet := range waiting {
			references[i] = packet.References()
		}
		if len(waiting) != 35 {
			t.Fatalf("%d packets wait, expected 35", len(waiting))
		}
		end(r, p, s)
		if name != "engine stopped" {
			r.run()
		}
		for i, packet := range waiting {
			want := references[i] - 1
			if name == "track closed" {
				want = 0
			}
			if n := packet.References(); n != want {
				t.Errorf("%s: packet %d has %d references, expected %d", name, i, n, want)
			}
		}
		if n := s.receiver.path.sender.Held(); n != 0 || len(r.engine.writers[0].paced) != 0 {
			t.Errorf("%s: %d packets wait", name, n)
		}
		if name == "overrun" {
			r.now = r.now.Add(frameInterval)
			p.Next()
			p.Send(r.now, p.Packets(4*1144)...)
			r.ticks(time.Second)
			checkContinuous(t, s.outlet.sent())
			if f := frames(t, s.outlet.sent()); f[1] != 7 || f[2] != 4 {
				t.Errorf("packets by frame are %v, expected 7 and 4", f)
			}
		}
	}
}

// TestLateFramesBehindHeldOnes delays the writer while packets of a frame wait. The frame is completed before the
// newest frame begins.
func TestLateFramesBehindHeldOnes(t *testing.T) {
	for _, mime := range []string{volumetric.MIMEVolumetric, volumetric.MIMEOpaque} {
		r := newPacedRig(t, pacing.Default, nil)
		p := r.publish(r.ingress(&fakePeer{}), 10, mime)
		s := r.subscribeAll(1, p)[0]
		r.begin(p)
		r.limit(s, 100_000)
		for frame := range 10 {
			p.Next()
			p.Send(r.now, p.Packets(10*1144)...)
			if frame <= 1 {
				r.run()
			}
			r.now = r.now.Add(frameInterval)
		}
		r.limit(s, 0)
		r.ticks(time.Second)
		sent := s.outlet.sent()
		checkContinuous(t, sent)
		f := frames(t, sent)
		delete(f, 1)
		delete(f, 2)
		if len(f) != 2 || f[3] != 10 || f[12] != 10 {
			t.Errorf("%s: packets by frame are %v, expected 10 of frame 3 and of frame 12", mime, f)
		}
	}
}

// TestTooManyWait fills a receiver's queue.
func TestTooManyWait(t *testing.T) {
	race.SkipSequential(t)
	r := newPacedRig(t, pacing.Default, func(c *rigConfig) { c.TrackCacheBytes, c.MaxLag = 256<<20, time.Hour })
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribeAll(1, p)[0]
	r.begin(p)
	r.limit(s, 1000)
	for range 4 {
		p.Next()
		p.Send(r.now, p.Packets(10_000*1144)...)
		r.run()
		if n := s.receiver.path.sender.Held(); n > maxHeld {
			t.Fatalf("%d packets wait", n)
		}
	}
	if n := r.engine.Stats().DroppedBudget; n != 4 {
		t.Errorf("%d frames are counted as dropped, expected 4", n)
	}
	r.limit(s, 0)
	p.Next()
	p.Send(r.now, p.Packets(10*1144)...)
	r.ticks(time.Second)
	checkContinuous(t, s.outlet.sent())
	if f := frames(t, s.outlet.sent()); f[7] != 10 || len(f) > 4 {
		t.Errorf("packets by frame are %v, expected frames 1 and 2, the beginning of frame 3, and 10 of frame 7", f)
	}
}

// TestRetransmissionsWait requests a whole frame at 1.25 Mbit/s, 2.5 times the estimate, at which one packet takes 7.8
// ms. The retransmissions leave ahead of the next frame if they are in time. Packets that are requested again while
// they wait are sent once.
func TestRetransmissionsWait(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(r *rig, p *publisher, s *subscriber)
		// left is the minimum number of retransmissions that leave, expired the minimum number that do not because of
		// their age.
		left, expired int
	}{
		{"in time", func(*rig, *publisher, *subscriber) {}, 18, 40},
		{"receiver closed", func(_ *rig, _ *publisher, s *subscriber) { s.receiver.Close() }, 6, 0},
		{"track closed", func(_ *rig, p *publisher, _ *subscriber) { p.track.Close() }, 6, 52},
		{"limit lifted", func(r *rig, _ *publisher, s *subscriber) { r.limit(s, 0) }, 60, 0},
	} {
		name := test.name
		r := newPacedRig(t, pacing.Default, nil)
		p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
		s := r.subscribeAll(1, p)[0]
		s.peer.rtt = 20 * time.Millisecond
		// The receivers of rigs have no deadline for repairs.
		s.receiver.path.deadline = 150 * time.Millisecond
		p.Next()
		p.Send(r.now, p.Packets(60*1144)...)
		r.ticks(20 * time.Millisecond)
		r.limit(s, 500_000)
		p.Next()
		p.Send(r.now, p.Packets(3*1144)...)
		var numbers []uint16
		for _, packet := range s.outlet.sent()[:60] {
			numbers = append(numbers, packet.SequenceNumber)
		}
		s.nack(t, r.now, numbers...)
		r.ticks(50 * time.Millisecond)
		media := len(s.outlet.sent())
		s.nack(t, r.now, numbers...)
		r.run()
		if n := len(s.outlet.repaired()); n < 6 || n > 8 || media > 60 {
			t.Errorf("%s: %d retransmissions and %d packets left in 50 ms, expected 7 and 60", name, n, media)
		}
		test.end(r, p, s)
		r.ticks(time.Second)
		stats := r.engine.Stats().NACKed
		expired := int(stats.Expired)
		if n := len(s.outlet.repaired()); n < test.left || n > test.left+4 || int(stats.Answered) != n ||
			expired < test.expired || expired > test.expired+5 {
			t.Errorf("%s: %d retransmissions left, expected %d or a few more, and %d or a few more too late: %+v", name,
				n, test.left, test.expired, stats)
		}
		if len(r.engine.writers[0].paced) > 0 {
			t.Errorf("%s: something waits", name)
		}
	}
}
