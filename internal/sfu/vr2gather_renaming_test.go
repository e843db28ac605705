package sfu

import (
	"fmt"
	"testing"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// TestLinesAreRenamedOnceThereMayBeNoMore has one client after the other come to a VR2Gather peer that may have three lines.
func TestLinesAreRenamedOnceThereMayBeNoMore(t *testing.T) {
	table := newSlotTable()
	table.named, table.limit = true, 3
	expect := func(step, want string, renames int) {
		t.Helper()
		if got := carried(table); got != want || table.renames != renames {
			t.Errorf("%s: lines are %q after %d renames, expected %q after %d", step, got, table.renames, want, renames)
		}
	}
	come := func(p *publication) {
		table.want(p)
		table.assign()
		var lines []newSlot
		for n := len(table.slots); n < min(table.namedCount(volumetric.KindVideo), table.limit); n++ {
			lines = append(lines, newSlot{mid: fmt.Sprint(n), kind: volumetric.KindVideo})
		}
		table.add(lines)
		table.assign()
	}
	// open tells how many lines may carry something.
	open := func() (n int) {
		for _, s := range table.slots {
			if s.target != nil && s.acknowledged == s.generation {
				n++
			}
		}
		return n
	}
	first, second, third := clientPublication(1, "body", 1), clientPublication(2, "body", 2), clientPublication(3, "body", 1)
	come(first)
	come(second)
	table.offer()
	table.answered()
	expect("two clients come", "video_1_0* video_2_0* video_2_1*", 0)
	come(third)
	expect("a third finds no line", "video_1_0* video_2_0* video_2_1*", 0)
	table.drop(second)
	table.assign()
	expect("the second goes", "video_1_0* video_3_0* video_2_1", 1)
	if n := open(); n != 1 {
		t.Errorf("%d lines may carry something before the peer knows the other name, expected 1", n)
	}
	table.answered()
	if n := open(); n != 1 {
		t.Errorf("%d lines may carry something after the answer to an offer of before, expected 1", n)
	}
	table.offer()
	table.answered()
	if n := open(); n != 2 {
		t.Errorf("%d lines may carry something after the answer, expected 2", n)
	}
	table.drop(third)
	come(second)
	expect("the second is back", "video_1_0* video_2_0* video_2_1*", 2)
}

// keptOutlet keeps what is sent on a line.
type keptOutlet struct{ sent [][]byte }

// Queue implements forward.Outlet.
func (o *keptOutlet) Queue(_ *rtp.Header, body []byte) error {
	o.sent = append(o.sent, append([]byte(nil), body...))
	return nil
}

// SSRC implements forward.Outlet.
func (o *keptOutlet) SSRC() uint32 { return 1 }

// RetransmissionSSRC implements forward.Outlet.
func (o *keptOutlet) RetransmissionSSRC() uint32 { return 2 }

// PayloadType implements forward.Outlet.
func (o *keptOutlet) PayloadType(string) (media, retransmission uint8, ok bool) { return 96, 97, true }

// TestPacketsNameWhatTheirLineIsCalled sends a frame under one name and the next under another.
func TestPacketsNameWhatTheirLineIsCalled(t *testing.T) {
	kept := &keptOutlet{}
	var outlet forward.Outlet = newNamedOutlet(kept, vr2gather.Track{Kind: volumetric.KindVideo, Client: 7, Tile: 2})
	header := &rtp.Header{Version: 2}
	if err := header.SetExtension(1, []byte{0, 1}); err != nil {
		t.Fatal(err)
	}
	send := func(frame uint32) vr2gather.Packet {
		t.Helper()
		data := []byte("tile")
		descriptor, body := payload.Descriptor{Frame: frame, Source: 1, Length: uint32(len(data))}, make([]byte, payload.DescriptorSize)
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
	outlet.(*namedOutlet).rename(vr2gather.Track{Kind: volumetric.KindVideo, Client: 8, Tile: 0})
	if p := send(3); p.Client != 8 || p.Tile != 0 || p.Frame != 3 {
		t.Errorf("under another name got %+v, expected frame 3 of client 8", p)
	}
	if _, repairs, _ := outlet.PayloadType(volumetric.MIMEVolumetric); repairs != 0 || outlet.RetransmissionSSRC() != 0 {
		t.Error("the peer is sent something twice")
	}
}
