package egress

import (
	"bytes"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const frameInterval = 33 * time.Millisecond

func TestForwardsToEveryReceiver(t *testing.T) {
	r := newRig(t, func(c *rigConfig) { c.Writers = 3 })
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	p.Parity = 1
	var subscribers []*subscriber
	for n := range 7 {
		s := r.subscribe(uint32(1000+10*n), volumetric.KindVideo)
		s.receiver.protection.Set(0.25)
		s.slot.Select(p.track, 1, r.now)
		subscribers = append(subscribers, s)
	}
	r.run()
	var want [][]byte
	for range 5 {
		r.now = r.now.Add(frameInterval)
		p.Next()
		packets := p.Packets(4000)
		p.Send(r.now, packets...)
		want = append(want, packets...)
		r.run()
	}
	r.pass(HousekeepingInterval)
	for _, s := range subscribers {
		got := s.outlet.sent()
		if len(got) != len(want) {
			t.Fatalf("%d packets were sent, expected %d", len(got), len(want))
		}
		checkContinuous(t, got)
		for i, packet := range got {
			if !bytes.Equal(packet.Payload, want[i][12:]) {
				t.Fatalf("payload of packet %d differs from what was published", i)
			}
			if packet.SSRC != s.outlet.ssrc || packet.PayloadType != 96 || packet.Version != 2 || packet.Extension ||
				len(packet.CSRC) > 0 {
				t.Fatalf("header of packet %d is %v", i, packet.Header)
			}
			if last := (i+1)%5 == 0; packet.Marker != last {
				t.Fatalf("marker of packet %d is %v, expected %v", i, packet.Marker, last)
			}
		}
		if switched := s.switches(); len(switched) != 1 || switched[0] != p.track {
			t.Fatalf("switched to %v, expected once to the track", switched)
		}
		if stats := s.slot.Stats(); stats.Packets != uint64(len(want)) || stats.Frames != 5 {
			t.Fatalf("slot counts %d packets of %d frames, expected %d of 5", stats.Packets, stats.Frames, len(want))
		}
	}
	stats := r.engine.Stats()
	if stats.FramesReceived != 5 || stats.FramesForwarded != 35 || stats.Switches != 7 {
		t.Errorf("counted %d frames received, %d forwarded, %d switches, expected 5, 35, 7", stats.FramesReceived,
			stats.FramesForwarded, stats.Switches)
	}
	if got := stats.Sent; got.Media.Packets != 7*20 || got.Parity.Packets != 7*5 {
		t.Errorf("counted %d media and %d parity packets sent, expected 140 and 35", got.Media.Packets,
			got.Parity.Packets)
	}
	if got := stats.Received; got.Media.Packets != 20 || got.Parity.Packets != 5 || got.Media.Bytes != 5*(4000+4*16) {
		t.Errorf("received %+v", got)
	}
	if n := stats.Residence.Count(); n != 175 {
		t.Errorf("residence of %d packets was observed, expected 175: each once per receiver", n)
	}
	if stats.Tracks != 1 || stats.Slots != 7 || stats.Receivers != 7 || stats.CacheBytes == 0 {
		t.Errorf("gauges are %d tracks, %d slots, %d receivers, %d bytes", stats.Tracks, stats.Slots, stats.Receivers,
			stats.CacheBytes)
	}
}

func TestClosedReceiverIsReleased(t *testing.T) {
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s, other := r.subscribe(1000, volumetric.KindVideo), r.subscribe(2000, volumetric.KindVideo)
	for _, s := range []*subscriber{s, other} {
		s.slot.Select(p.track, 1, r.now)
	}
	r.run()
	p.Next()
	packets := p.Packets(4000)
	p.Send(r.now, packets[:2]...)
	r.run()
	s.receiver.Close()
	p.Send(r.now, packets[2:]...)
	r.run()
	if n, m := len(s.outlet.sent()), len(other.outlet.sent()); n != 2 || m != 4 {
		t.Errorf("%d packets were sent to the closed receiver and %d to the other, expected 2 and 4", n, m)
	}
	other.receiver.Close()
	r.pass(time.Second)
	w := r.engine.writers[0]
	if len(w.receivers)+len(w.followers)+len(w.unsettled)+len(w.touched)+len(w.ready) != 0 || w.load.Load() != 0 {
		t.Errorf("the writer keeps %d receivers, %d followers, %d slots, a load of %d", len(w.receivers),
			len(w.followers), len(w.unsettled), w.load.Load())
	}
}

// TestLateFrames delays the writer beyond MaxLag. The writer continues at the newest frame, and completes the frame
// that it had begun.
func TestLateFrames(t *testing.T) {
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.slot.Select(p.track, 1, r.now)
	r.run()
	for frame := range 10 {
		p.Next()
		packets := p.Packets(4000)
		if frame == 0 {
			p.Send(r.now, packets[:2]...)
			r.run()
			packets = packets[2:]
		}
		p.Send(r.now, packets...)
		r.now = r.now.Add(frameInterval)
	}
	r.run()
	got := s.outlet.sent()
	checkContinuous(t, got)
	// Frames 2 to 6 waited for 9 to 5 intervals, 297 to 165 ms. The newest frame is 10.
	if f := frames(t, got); len(f) != 2 || f[1] != 4 || f[10] != 4 {
		t.Errorf("packets by frame are %v, expected 4 of frame 1 and 4 of frame 10", f)
	}
	told := s.dropped()
	if stats := r.engine.Stats(); stats.DroppedLate != 8 || len(told) != 1 || told[DroppedLate] != 8 {
		t.Errorf("%d frames counted as dropped, %v told, expected 8", stats.DroppedLate, told)
	}
}

// TestRefusedFrameOfAPendingTrack blocks a receiver for the first frame of a pending track. The active track is silent,
// so that no track carries the frame. The frame is reported as blocked when the pending track begins.
func TestRefusedFrameOfAPendingTrack(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{})
	high, low := r.publish(i, 10, volumetric.MIMEVolumetric), r.publish(i, 20, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	send := func(p *publisher) {
		r.now = r.now.Add(frameInterval)
		high.Next()
		low.Next()
		p.Send(r.now, p.Packets(1000)...)
		r.run()
	}
	s.slot.Select(high.track, 1, r.now)
	r.run()
	for range 3 {
		send(high)
	}
	s.slot.Select(low.track, 1, r.now)
	r.run()
	s.peer.block(true)
	send(low)
	s.peer.block(false)
	send(low)
	got := s.outlet.sent()
	checkContinuous(t, got)
	if f := frames(t, got); len(f) != 4 || f[5] != 1 {
		t.Errorf("packets by frame are %v, expected those of frames 1 to 3 and 5", f)
	}
	told := s.dropped()
	if stats := r.engine.Stats(); stats.DroppedBlocked != 1 || len(told) != 1 || told[DroppedBlocked] != 1 {
		t.Errorf("%d frames counted as blocked, %v told, expected 1", stats.DroppedBlocked, told)
	}
}

// TestDropsOfTwoPublications drops frames of a track, and then frames of a track of another publication that feeds the
// same slot. All of them are reported.
func TestDropsOfTwoPublications(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{})
	first, second := r.publish(i, 10, volumetric.MIMEVolumetric), r.publish(i, 20, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	send := func(frames int, blocked bool) {
		s.peer.block(blocked)
		for range frames {
			r.now = r.now.Add(frameInterval)
			for _, p := range []*publisher{first, second} {
				p.Next()
				p.Send(r.now, p.Packets(1000)...)
			}
			r.run()
		}
	}
	s.slot.Select(first.track, 1, r.now)
	r.run()
	send(1, false)
	send(2, true)
	s.slot.Select(second.track, 2, r.now)
	send(1, false)
	send(3, true)
	send(1, false)
	if n := len(s.outlet.sent()); n != 3 {
		t.Errorf("%d packets were sent, expected 3", n)
	}
	told := s.dropped()
	if stats := r.engine.Stats(); stats.DroppedBlocked != 5 || told[DroppedBlocked] != 5 {
		t.Errorf("%d frames counted as dropped, %v told, expected 5", stats.DroppedBlocked, told)
	}
}

// TestOverrun lets a writer fall behind by more than the log holds.
func TestOverrun(t *testing.T) {
	r := newRig(t, func(c *rigConfig) { c.TrackCacheBytes = 40 * (packetlog.MaxPayload + packetlog.Overhead) })
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.slot.Select(p.track, 1, r.now)
	r.run()
	for frame := range 9 {
		p.Next()
		packets := p.Packets(10 * 1144)
		if frame == 0 {
			p.Send(r.now, packets[:5]...)
			r.run()
			packets = packets[5:]
		}
		p.Send(r.now, packets...)
	}
	r.run()
	// The log holds frames 6 to 9. The follower holds its next packet.
	got := s.outlet.sent()
	checkContinuous(t, got)
	f := frames(t, got)
	if len(f) != 5 || f[1] >= 10 || f[6] != 10 || f[9] != 10 {
		t.Errorf("packets by frame are %v, expected some of frame 1 and all of 6 to 9", f)
	}
	told := s.dropped()
	if stats := r.engine.Stats(); stats.DroppedOverrun != 5 || len(told) != 1 || told[DroppedOverrun] != 5 {
		t.Errorf("%d frames counted as dropped, %v told, expected 5", stats.DroppedOverrun, told)
	}
}

// TestOutletBeforeNegotiation selects a track for an outlet without an SSRC. No packet is numbered until the outlet has
// an SSRC.
func TestOutletBeforeNegotiation(t *testing.T) {
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribe(0, volumetric.KindVideo)
	s.slot.Select(p.track, 1, r.now)
	r.run()
	p.Next()
	p.Send(r.now, p.Packets(4000)...)
	r.run()
	s.outlet.mu.Lock()
	s.outlet.ssrc = 77
	s.outlet.mu.Unlock()
	r.pass(2 * HousekeepingInterval)
	p.Next()
	p.Send(r.now, p.Packets(4000)...)
	r.run()
	got := s.outlet.sent()
	if len(got) != 4 || got[0].SSRC != 77 || descriptorOf(t, got[0]).Frame != 2 {
		t.Fatalf("%d packets were sent, expected the 4 of frame 2", len(got))
	}
}
