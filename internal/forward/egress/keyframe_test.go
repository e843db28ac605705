package egress

import (
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// The first payloads of frames.
var (
	h264Key   = []byte{0x67, 0x42, 0xe0}
	h264Delta = []byte{0x41, 0x9a, 0x00}
	vp8Key    = []byte{0x10, 0x10, 0x02, 0x00, 0x9d, 0x01, 0x2a, 16, 0, 16, 0}
	vp8Delta  = []byte{0x10, 0x11, 0x02, 0x00}
)

// plis counts requests for a key frame of a stream.
func plis(t *testing.T, packets []rtcp.Packet, ssrc uint32) int {
	t.Helper()
	n := 0
	for _, p := range packets {
		if pli, ok := p.(*rtcp.PictureLossIndication); ok {
			if pli.MediaSSRC != ssrc {
				t.Fatalf("PLI for %d, expected %d", pli.MediaSSRC, ssrc)
			}
			n++
		}
	}
	return n
}

// TestSwitchWaitsForKeyFrame selects an H264 track. The publisher is asked every 500 ms until a key frame arrives, and
// the slot begins with that frame.
func TestSwitchWaitsForKeyFrame(t *testing.T) {
	r := newRig(t, nil)
	peer := &fakePeer{}
	i := r.ingress(peer)
	old, p := r.publish(i, 20, volumetric.MIMEH264), r.publish(i, 10, volumetric.MIMEH264)
	s := r.subscribe(1000, volumetric.KindVideo)
	asked := 0
	frame := func(body []byte) {
		old.Next()
		old.Send(r.now, old.Packet(h264Delta, true))
		p.Next()
		p.Send(r.now, p.Packet(body, false), p.Packet([]byte{0x41, 1}, true))
		r.run()
		packets, _ := step(i, r.now)
		asked += plis(t, packets, 10)
		r.now = r.now.Add(50 * time.Millisecond)
	}
	frame(h264Delta)
	s.slot.Select(p.track, 1, r.now)
	r.run()
	for range 24 {
		frame(h264Delta)
	}
	if asked != 3 {
		t.Errorf("asked %d times within 1.2 s, expected 3", asked)
	}
	if n := len(s.outlet.sent()); n != 0 {
		t.Errorf("%d packets were sent before the key frame", n)
	}
	frame(h264Key)
	frame(h264Delta)
	if n := len(s.outlet.sent()); n != 4 {
		t.Errorf("%d packets were sent, expected the key frame's and the next one's 4", n)
	}
	for range 20 {
		frame(h264Delta)
	}
	if asked > 4 {
		t.Errorf("asked %d times, expected no more once the key frame was there", asked)
	}
}

func TestReceiversAskForKeyFrames(t *testing.T) {
	for _, test := range []struct {
		name, mime string
		body       []byte
		want       int
	}{
		{"H264", volumetric.MIMEH264, h264Key, 4},
		{"VP8", volumetric.MIMEVP8, vp8Key, 4},
		{"opaque", volumetric.MIMEOpaque, []byte{1}, 0},
		{"unknown", "video/x-holography", []byte{1}, 0},
		{"volumetric", volumetric.MIMEVolumetric, nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, nil)
			i := r.ingress(&fakePeer{})
			p := r.publish(i, 10, test.mime)
			s := r.subscribe(1000, volumetric.KindVideo)
			s.slot.Select(p.track, 1, r.now)
			r.run()
			send := func() {
				p.Next()
				if test.body == nil {
					p.Send(r.now, p.Packets(100)...)
				} else {
					p.Send(r.now, p.Packet(test.body, true))
				}
				r.run()
			}
			send()
			send()
			step(i, r.now)
			if len(s.outlet.sent()) == 0 {
				t.Fatal("nothing was sent")
			}
			// The requests of 20 receivers, ten a second, for 2 s.
			r.now = r.now.Add(600 * time.Millisecond)
			asked := 0
			for n := range 40 {
				if n%2 == 0 {
					s.rtcp(t, r.now, &rtcp.PictureLossIndication{MediaSSRC: 1000})
				} else {
					s.rtcp(t, r.now, &rtcp.FullIntraRequest{MediaSSRC: 1000,
						FIR: []rtcp.FIREntry{{SSRC: 1000, SequenceNumber: uint8(n)}}})
				}
				r.run()
				packets, _ := step(i, r.now)
				asked += plis(t, packets, 10)
				r.now = r.now.Add(50 * time.Millisecond)
			}
			stats := r.engine.Stats()
			if asked != test.want {
				t.Errorf("the publisher was asked %d times, expected %d", asked, test.want)
			}
			absorbed := uint64(40)
			if test.want > 0 {
				absorbed = 0
			}
			if stats.KeyFramesAsked != 40 || stats.KeyFramesAbsorbed != absorbed {
				t.Errorf("counted %d asked and %d absorbed, expected 40 and %d", stats.KeyFramesAsked,
					stats.KeyFramesAbsorbed, absorbed)
			}
		})
	}
}

// TestKeyFrameServesEarlierRequests lets a key frame arrive while a request waits for the limit.
func TestKeyFrameServesEarlierRequests(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{})
	p := r.publish(i, 10, volumetric.MIMEVP8)
	p.track.WantKeyFrame()
	packets, _ := step(i, r.now)
	if plis(t, packets, 10) != 1 {
		t.Fatal("the first request was not sent at once")
	}
	r.now = r.now.Add(600 * time.Millisecond)
	packets, _ = step(i, r.now)
	if plis(t, packets, 10) != 0 {
		t.Fatal("one request was sent twice")
	}
	p.track.WantKeyFrame()
	packets, _ = step(i, r.now)
	if plis(t, packets, 10) != 1 {
		t.Fatal("the second request was not sent at once")
	}
	p.track.WantKeyFrame()
	packets, next := step(i, r.now)
	if len(packets) != 0 || next.After(r.now.Add(500*time.Millisecond)) {
		t.Fatalf("%d packets, next at %v, expected none for 500 ms", len(packets), next.Sub(r.now))
	}
	p.Send(r.now, p.Packet(vp8Delta, true))
	p.Next()
	p.Send(r.now, p.Packet(vp8Key, true))
	r.now = r.now.Add(time.Second)
	packets, _ = step(i, r.now)
	if n := plis(t, packets, 10); n != 0 {
		t.Errorf("%d requests after the key frame had come, expected none", n)
	}
}
