package client

import (
	"bytes"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// foreignBody returns a publication of VR2Gather's frames with one tile.
func foreignBody() volumetric.Publication {
	p := described("body", volumetric.MIMEVolumetric, 1, 1)
	p.Codec.Format, p.VR2Gather = "codec=cwi1", true
	return p
}

// framed returns a frame with VR2Gather's header and size bytes.
func framed(capture time.Time, size int) []byte {
	whole := vr2gather.NewFrameHeader(vr2gather.CodecOctree, size, capture).Append(nil)
	for i := range size {
		whole = append(whole, byte(i*7))
	}
	return whole
}

// TestVR2GatherFramesPassUnchanged writes frames of a marked publication and receives the sent packets.
func TestVR2GatherFramesPassUnchanged(t *testing.T) {
	sending := newRig(t, Config{})
	p, wires := published(t, sending, foreignBody())
	// The header is the publisher's. The server's clock does not change it.
	reply(sending, time.Hour)
	p.present.sent.SetParity(0.25)
	capture := time.Date(2026, 11, 20, 15, 30, 0, 250_000_000, time.UTC)
	sizes := []int{0, 1, 1128, 1129, 10_000}
	for i, size := range sizes {
		whole := framed(capture, size)
		if _, err := p.WriteFrame(0, 0, OutgoingFrame{Number: uint32(40 + i), Capture: time.Now(),
			Codec: volumetric.FourCC{'n', 'o', 'n', 'e'}, Data: whole}); err != nil {
			t.Fatal(err)
		}
		clear(whole) // it was copied
	}
	flush(sending, time.Now().Add(time.Minute))

	receiving := newRig(t, Config{})
	body := foreignBody()
	in := newIncoming(t, receiving, "4", volumetric.KindVideo, 1)
	assign(t, receiving, "4", 1, "grace", 0, &body)
	for i, packet := range wires[0].sent {
		var d payload.Descriptor
		if _, err := d.Unmarshal(packet.Payload); err != nil || d.Prefixed ||
			len(packet.Payload) > payload.MaxPacketSize {
			t.Fatalf("packet of %d bytes: %+v, %v, want no prefix", len(packet.Payload), d, err)
		}
		in.deliver(uint16(i), packet.Timestamp, packet.Payload, epoch.Add(time.Duration(i)*time.Millisecond))
	}
	frames := taken(receiving)
	if len(frames) != len(sizes) {
		t.Fatalf("%d frames, want %d", len(frames), len(sizes))
	}
	for i, f := range frames {
		want := framed(capture, sizes[i])
		if f.Number != int64(40+i) || !bytes.Equal(f.Whole, want) ||
			!bytes.Equal(f.Data, want[vr2gather.FrameHeaderSize:]) {
			t.Errorf("frame %d has %d bytes, %d of them data, want %d", f.Number, len(f.Whole), len(f.Data), len(want))
		}
		if f.Codec != vr2gather.CodecOctree || !f.Capture.Equal(capture) {
			t.Errorf("frame %d is %v of %v, want cwi1 of %v", f.Number, f.Codec, f.Capture, capture)
		}
	}
}

// TestFramesThatAreNotWhatTheirPublicationSays: frames without VR2Gather's header, and frames with a prefix, are
// delivered completely.
func TestFramesThatAreNotWhatTheirPublicationSays(t *testing.T) {
	m := newRig(t, Config{})
	body := foreignBody()
	in := newIncoming(t, m, "4", volumetric.KindVideo, 1)
	assign(t, m, "4", 1, "grace", 0, &body)
	for i, data := range []string{"", "short", "longer than a header, but without one"} {
		var f payload.Fragmenter
		if err := f.Begin(payload.Descriptor{Frame: uint32(i)}, []byte(data)); err != nil {
			t.Fatal(err)
		}
		packet, err := f.AppendPacket(nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		in.deliver(uint16(i), 7, packet, epoch)
		frames := taken(m)
		if len(frames) != 1 || string(frames[0].Data) != data || string(frames[0].Whole) != data ||
			frames[0].Codec != (volumetric.FourCC{}) || !frames[0].Capture.IsZero() {
			t.Errorf("%q became %+v", data, frames)
		}
	}
	in.deliver(9, 7, packets(t, 9, 0, epoch, 3)[0], epoch)
	if frames := taken(m); len(frames) != 1 || frames[0].Whole != nil || string(frames[0].Data) != "\x00\x01\x02" ||
		frames[0].Codec != (volumetric.FourCC{'t', 'e', 's', 't'}) {
		t.Errorf("a frame with a prefix became %+v", frames)
	}
}
