package vr2gather

import (
	"testing"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// keptOutlet records the packets of a line.
type keptOutlet struct{ sent [][]byte }

// Queue implements egress.Outlet.
func (o *keptOutlet) Queue(_ *rtp.Header, body []byte) error {
	o.sent = append(o.sent, append([]byte(nil), body...))
	return nil
}

// SSRC implements egress.Outlet.
func (o *keptOutlet) SSRC() uint32 { return 1 }

// RetransmissionSSRC implements egress.Outlet.
func (o *keptOutlet) RetransmissionSSRC() uint32 { return 2 }

// PayloadType implements egress.Outlet.
func (o *keptOutlet) PayloadType(string) (media, retransmission uint8, ok bool) { return 96, 97, true }

// TestPacketsHaveTheNameOfTheLine sends a frame under one name and the next under another.
func TestPacketsHaveTheNameOfTheLine(t *testing.T) {
	kept := &keptOutlet{}
	var outlet egress.Outlet = newNamedOutlet(kept, subscriber.Name{Kind: volumetric.KindVideo, Publisher: 7, Tile: 2})
	header := &rtp.Header{Version: 2}
	if err := header.SetExtension(1, []byte{0, 1}); err != nil {
		t.Fatal(err)
	}
	send := func(frame uint32) vr2gather.Packet {
		t.Helper()
		data := []byte("tile")
		descriptor, body := payload.Descriptor{Frame: frame, Source: 1, Length: uint32(len(data))},
			make([]byte, payload.DescriptorSize)
		if _, err := descriptor.MarshalTo(body); err != nil {
			t.Fatal(err)
		}
		if err := outlet.Queue(header, append(body, data...)); err != nil {
			t.Fatal(err)
		}
		p, err := vr2gather.ParsePacket(volumetric.KindVideo, kept.sent[len(kept.sent)-1])
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := send(900); p.Client != 7 || p.Tile != 2 || p.Frame != 900 {
		t.Errorf("got %+v", p)
	}
	outlet.(*namedOutlet).Rename(subscriber.Name{Kind: volumetric.KindVideo, Publisher: 8, Tile: 0})
	if p := send(3); p.Client != 8 || p.Tile != 0 || p.Frame != 3 {
		t.Errorf("under another name got %+v, expected frame 3 of client 8", p)
	}
	if _, repairs, _ := outlet.PayloadType(volumetric.MIMEVolumetric); repairs != 0 ||
		outlet.RetransmissionSSRC() != 0 {
		t.Error("the peer is sent something twice")
	}
}
