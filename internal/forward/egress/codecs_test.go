package egress

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestForeignCodecs(t *testing.T) {
	for _, test := range []struct {
		name, mime string
		wantType   uint8
		key        []byte
	}{
		{"H264", volumetric.MIMEH264, 102, h264Key},
		{"VP8", volumetric.MIMEVP8, 100, vp8Key},
		{"opaque", volumetric.MIMEOpaque, 98, []byte{1, 2, 3}},
		{"unknown", "video/x-holography", 98, []byte{1, 2, 3}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, nil)
			p := r.publish(r.ingress(&fakePeer{}), 10, test.mime)
			s := r.subscribe(1000, volumetric.KindVideo)
			s.slot.Select(p.track, 7, r.now)
			r.run()
			// The slot must not begin within the current frame.
			p.Send(r.now, p.Packet([]byte{0x41, 0}, false), p.Packet([]byte{0x41, 1}, true))
			r.run()
			if n := len(s.outlet.sent()); n != 0 {
				t.Fatalf("%d packets were sent of a frame whose beginning is not known", n)
			}
			for range 3 {
				p.Next()
				p.Send(r.now, p.Packet(test.key, false), p.Packet([]byte{0x41, 1}, false),
					p.Packet([]byte{0x41, 2}, true))
				r.run()
			}
			got := s.outlet.sent()
			if len(got) != 9 {
				t.Fatalf("%d packets were sent, expected 9", len(got))
			}
			checkContinuous(t, got)
			for i, packet := range got {
				if packet.PayloadType != test.wantType || packet.Marker != (i%3 == 2) {
					t.Errorf("packet %d has type %d and marker %v", i, packet.PayloadType, packet.Marker)
				}
				if i > 0 && i%3 == 0 && packet.Timestamp-got[i-1].Timestamp != 3000 {
					t.Errorf("timestamp goes from %d to %d, expected a step of 3000", got[i-1].Timestamp,
						packet.Timestamp)
				}
			}
		})
	}
}

// TestForeignWithoutMarkers separates frames by timestamp only. A packet after a gap is not taken for the start of a
// frame.
func TestForeignWithoutMarkers(t *testing.T) {
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, "video/x-holography")
	s := r.subscribe(1000, volumetric.KindVideo)
	s.slot.Select(p.track, 7, r.now)
	r.run()
	p.Send(r.now, p.Packet([]byte{1}, false))
	p.Packet([]byte{2}, false) // lost
	p.Next()
	p.Send(r.now, p.Packet([]byte{3}, false), p.Packet([]byte{4}, false))
	r.run()
	if n := len(s.outlet.sent()); n != 0 {
		t.Fatalf("%d packets were sent behind a gap", n)
	}
	p.Next()
	p.Send(r.now, p.Packet([]byte{5}, false), p.Packet([]byte{6}, false))
	r.run()
	if got := s.outlet.sent(); len(got) != 2 || got[0].Payload[0] != 5 {
		t.Fatalf("%d packets were sent, expected 2", len(got))
	}
}

func TestAudioGoesFirst(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{})
	video, audio := r.publish(i, 10, volumetric.MIMEVolumetric), r.publish(i, 20, volumetric.MIMEOpus)
	s := r.subscribe(1000, volumetric.KindVideo)
	sound := newFakeOutlet(s.peer, 2000)
	slot := s.receiver.AddSlot(sound, volumetric.KindAudio)
	s.slot.Select(video.track, 1, r.now)
	slot.Select(audio.track, 2, r.now)
	r.run()
	for range 3 {
		video.Next()
		r.now = r.now.Add(frameInterval)
		video.Send(r.now, video.Packets(3*groupWrites*1144)...)
		audio.Timestamp += 960
		audio.Send(r.now, audio.Packet([]byte("opus"), false))
		w := r.engine.writers[0]
		w.read()
		w.collect()
		if first := w.ready[0]; first.track != audio.track {
			t.Fatal("audio does not stand first among the ready")
		}
		r.run()
	}
	got := sound.sent()
	if len(got) != 3 || got[0].PayloadType != 111 {
		t.Fatalf("%d packets of audio were sent, expected 3", len(got))
	}
	checkContinuous(t, got)
	if d := got[2].Timestamp - got[1].Timestamp; d != 960 {
		t.Errorf("audio timestamps step by %d, expected 960", d)
	}
	if stats := r.engine.Stats(); stats.Sent.Audio.Packets != 3 || stats.FramesForwarded != 3 {
		t.Errorf("counted %d audio packets and %d frames, expected 3 and 3", stats.Sent.Audio.Packets,
			stats.FramesForwarded)
	}
}

func TestAudioBeginsNow(t *testing.T) {
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEOpus)
	for n := range 10 {
		p.Timestamp += 960
		p.Send(r.now, p.Packet([]byte{byte(n)}, false))
	}
	r.pass(200 * time.Millisecond)
	s := r.subscribe(1000, volumetric.KindAudio)
	s.slot.Select(p.track, 1, r.now)
	r.run()
	p.Timestamp += 10 * 960
	p.Send(r.now, p.Packet([]byte{10}, false))
	r.run()
	if got := s.outlet.sent(); len(got) != 1 || got[0].Payload[0] != 10 {
		t.Errorf("%d packets were sent, expected only the one that came after the selection", len(got))
	}
}
