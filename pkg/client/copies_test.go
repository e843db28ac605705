package client

import (
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/redundancy"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// routedPeer is a peer with two paths. It records the changes of SetCopied.
type routedPeer struct {
	noFlush
	copied  bool
	doubled bool
	changes int
}

func (*routedPeer) SecondRoute() bool  { return true }
func (*routedPeer) PrimaryPath() uint8 { return 0 }

func (p *routedPeer) SetCopied(copied bool) {
	p.copied = copied
	p.changes++
}

func (p *routedPeer) SetDoubled(doubled bool) { p.doubled = doubled }

// TestPathsOfASession checks that the session counts the packets of each path, and that the sending goroutine sets
// which packets leave on both.
func TestPathsOfASession(t *testing.T) {
	m := newRig(t, Config{})
	packet := func(number byte) []byte {
		raw, err := (&rtp.Packet{Header: rtp.Header{Version: 2, SSRC: 9, SequenceNumber: uint16(number)}}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	now := time.Now()
	m.RTP(9, packet(1), &transport.PacketInfo{At: now})
	m.RTP(9, packet(2), &transport.PacketInfo{At: now, Path: 1})
	m.Repeated(9, 2, &transport.PacketInfo{At: now})
	m.Repeated(9, 1, &transport.PacketInfo{At: now, Path: 1})
	m.RTP(9, packet(3), &transport.PacketInfo{At: now, Path: 1})
	got := m.session.Redundancy().Received
	want := []PathCounts{{First: 1, Repeated: 1, Only: 0}, {First: 2, Repeated: 1, Only: 1}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("received %+v, expected %+v", got, want)
	}
	p, _ := published(t, m, described("body", volumetric.MIMEVolumetric, 1, 1))
	m.uplink.SetRedundancy(redundancy.Auto)
	m.connect()
	if _, err := p.WriteFrame(0, 0, OutgoingFrame{Number: 1, Capture: now, Data: []byte("tile")}); err != nil {
		t.Fatal(err)
	}
	s, peer := sending{media: m.media}, &routedPeer{}
	s.step(now.Add(time.Second), peer)
	if peer.copied || peer.changes != 2 {
		t.Errorf("%d changes of the routes, and at the end packets are copied: %v, expected 2 and false", peer.changes,
			peer.copied)
	}
	m.RTCP((&redundancy.Report{Time: 1}).Append(nil), now.Add(time.Second))
	stats := m.session.Redundancy()
	if got := stats.Copied["lowest_quality"]; got.Packets != 1 || got.Packets != stats.Sent.Packets {
		t.Errorf("copied %+v of %+v, expected one packet of one", got, stats.Sent)
	}
}
