package egress

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"

	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// browse adds a receiver with one slot, whose peer receives the codecs of browsers.
func (r *rig) browse(ssrc uint32) *subscriber {
	s := r.subscribe(ssrc, volumetric.KindVideo)
	s.outlet.types = map[string][2]uint8{volumetric.MIMEVP8: {100, 101}, volumetric.MIMEH264: {102, 103}}
	return s
}

// unwrapVP8 reassembles a frame as a browser does, and unwraps the frame as a page's script does.
func unwrapVP8(t *testing.T, packets []rtp.Packet) []byte {
	t.Helper()
	packets = slices.Clone(packets)
	slices.SortFunc(packets, func(a, b rtp.Packet) int { return int(int16(a.SequenceNumber - b.SequenceNumber)) })
	var frame []byte
	for i, p := range packets {
		var vp8 codecs.VP8Packet
		part, err := vp8.Unmarshal(p.Payload)
		if err != nil || p.PayloadType != 100 || vp8.IsPartitionHead(p.Payload) != (i == 0) ||
			p.Marker != (i == len(packets)-1) {
			t.Fatalf("packet %d of %d: type %d, begins %t, marker %t, error %v", i, len(packets), p.PayloadType,
				vp8.IsPartitionHead(p.Payload), p.Marker, err)
		}
		frame = append(frame, part...)
	}
	frame, ok := bytes.CutPrefix(frame, vp8KeyFrame[:])
	if !ok || frame == nil {
		t.Fatalf("the frame begins with %x, expected a key frame", frame[:min(len(frame), 12)])
	}
	return frame
}

func TestVP8Wrap(t *testing.T) {
	for _, size := range []int{0, 1, payload.FragmentSize, 5*payload.FragmentSize + 7} {
		r := newRig(t, nil)
		p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
		s := r.browse(1000)
		s.slot.Select(p.track, 7, r.now)
		r.run()
		p.Next()
		p.Send(r.now, p.Packets(1)...)
		r.run()
		p.Next()
		packets := p.Packets(size)
		var want []byte
		for i, raw := range packets {
			var packet rtp.Packet
			if err := packet.Unmarshal(raw); err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				packet.Payload = packet.Payload[payload.DescriptorSize:]
			}
			want = append(want, packet.Payload...)
		}
		// The first packet arrives second, as on a path that reorders.
		if len(packets) > 1 {
			packets[0], packets[1] = packets[1], packets[0]
		}
		p.Send(r.now, packets...)
		r.run()
		got := s.outlet.sentFrom(1)
		if frame := unwrapVP8(t, got); !bytes.Equal(frame, want) {
			t.Errorf("frame of %d bytes came as %d bytes, expected %d: the first packet's descriptor and the data",
				size, len(frame), len(want))
		}
		for _, packet := range got {
			s.nack(t, r.now, packet.SequenceNumber)
		}
		r.run()
		repaired := s.outlet.repaired()
		if len(repaired) != len(got) {
			t.Fatalf("%d of %d packets were sent again", len(repaired), len(got))
		}
		for i, packet := range repaired {
			number := binary.BigEndian.Uint16(packet.Payload)
			at := slices.IndexFunc(got, func(o rtp.Packet) bool { return o.SequenceNumber == number })
			if packet.PayloadType != 101 || at < 0 || !bytes.Equal(packet.Payload[2:], got[at].Payload) {
				t.Errorf("retransmission %d differs from what it repeats", i)
			}
		}
	}
}

// TestVP8WrapWithoutParity checks that only a peer that receives wrapped frames gets no parity.
func TestVP8WrapWithoutParity(t *testing.T) {
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	p.Parity = 2
	browser, native := r.browse(1000), r.subscribe(2000, volumetric.KindVideo)
	for _, s := range []*subscriber{browser, native} {
		s.receiver.protection.Set(0.25)
		s.slot.Select(p.track, 7, r.now)
	}
	r.run()
	for range 2 {
		p.Next()
		p.Send(r.now, p.Packets(8*payload.FragmentSize)...)
		r.run()
	}
	if share := browser.receiver.ParityShare(); share != 0 {
		t.Errorf("the browser's share of parity is %v", share)
	}
	got := browser.outlet.sent()
	if len(got) != 16 {
		t.Fatalf("the browser was sent %d packets, expected 2 × 8", len(got))
	}
	unwrapVP8(t, got[:8])
	unwrapVP8(t, got[8:])
	if n := len(native.outlet.sent()); n != 20 {
		t.Errorf("the native peer was sent %d packets, expected 2 × (8 + 2)", n)
	}
}

// TestVP8WrapOfForeignFrames checks that frames that only clients can read are wrapped, and that video of a browser's
// codec is not.
func TestVP8WrapOfForeignFrames(t *testing.T) {
	for _, test := range []struct {
		mime       string
		key        []byte
		vp8Wrapped bool
	}{
		{"video/x-holography", []byte{1, 2, 3}, true},
		{volumetric.MIMEVP8, vp8Key, false},
	} {
		r := newRig(t, nil)
		p := r.publish(r.ingress(&fakePeer{}), 10, test.mime)
		s := r.browse(1000)
		s.slot.Select(p.track, 7, r.now)
		p.Send(r.now, p.Packet([]byte{9}, true))
		r.run()
		p.Next()
		p.Send(r.now, p.Packet(test.key, false), p.Packet([]byte{0, 4, 5}, true))
		r.run()
		got := s.outlet.sent()
		if len(got) != 2 {
			t.Fatalf("%s: %d packets were sent, expected 2", test.mime, len(got))
		}
		if !test.vp8Wrapped {
			if !bytes.Equal(got[0].Payload, test.key) {
				t.Errorf("%s: the packet was changed", test.mime)
			}
			continue
		}
		if frame := unwrapVP8(t, got); !bytes.Equal(frame, append(bytes.Clone(test.key), 0, 4, 5)) {
			t.Errorf("%s: frame came as %v", test.mime, frame)
		}
	}
}

// TestVP8WrapDoesNotMeetVideo checks that a peer without H264 receives no H264, which its decoder could not read,
// wrapped or not.
func TestVP8WrapDoesNotMeetVideo(t *testing.T) {
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEH264)
	s := r.browse(1000)
	delete(s.outlet.types, volumetric.MIMEH264)
	s.slot.Select(p.track, 7, r.now)
	for range 2 {
		p.Send(r.now, p.Packet(h264Key, true))
		r.run()
		p.Next()
	}
	if n := len(s.outlet.sent()); n != 0 {
		t.Errorf("%d packets were sent", n)
	}
}
