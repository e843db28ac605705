package e2e

import (
	"net"
	"sync/atomic"
	"testing"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// headers is a socket that counts arriving RTP packets with and without extensions, using their unencrypted headers.
type headers struct {
	net.PacketConn
	extended, plain atomic.Int64
}

func listenForHeaders(t *testing.T) *headers {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &headers{PacketConn: conn}
}

func (h *headers) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := h.PacketConn.ReadFrom(b)
	// Version 2, and not a packet type of RTCP (RFC 5761 section 4).
	if err == nil && n >= 12 && b[0]>>6 == 2 && (b[1] < 192 || b[1] > 223) {
		if b[0]&0x10 != 0 {
			h.extended.Add(1)
		} else {
			h.plain.Add(1)
		}
	}
	return n, from, err
}

// TestArrivalsReportedByRFC8888 has one participant agree on RFC 8888 and publish as well, next to a receiver with
// transport-wide reports: both are estimated, so that the server sends them their links' estimates and they may lower
// them; the publisher's uplink is estimated, too.
func TestArrivalsReportedByRFC8888(t *testing.T) {
	// Tracks without receivers are sent as well.
	c := startConference(t, func(c *config.Config) { c.Rooms.Suppression.Policy = demand.Warm })
	stalls := wait.WatchStalls(t)
	load := body(4, 3)
	load.FrameBytes, load.Step = 20_000, 2
	join(t, c, testbed.Part{Room: "room", Identity: "alice", Loads: []testbed.Load{load}})
	publication := volumetric.Publication{
		Name: "desk", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, FrameRate: 30,
		Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
		Tiles: make([]volumetric.Tile, 1), Qualities: make([]volumetric.QualityLevel, 1),
	}
	const received = `volsfu_transport_feedback_packets_total{outcome="received"}`
	var bob *client.Session
	// The first is the only receiver, so the reports are its.
	for _, settings := range []client.Config{
		{Identity: "bob", Feedback: client.FeedbackCCFB, Publications: []volumetric.Publication{publication}},
		{Identity: "carol", Feedback: client.FeedbackTransportCC},
	} {
		socket := listenForHeaders(t)
		settings.URL, settings.Room, settings.Receive, settings.PacketConn = c.Server.URL(), "room", true, socket
		s := joinAs(t, settings)
		estimate := volumetric.Bitrate(0)
		wait := func(what string, reached func() bool) {
			wait.Until(t, what, func() bool {
				for {
					select {
					case e := <-s.Events():
						if b, ok := e.(client.Bandwidth); ok {
							estimate = b.Estimate
						}
					case <-s.Frames():
					default:
						return reached()
					}
				}
			})
		}
		before := metric(t, c, received)
		wait(settings.Identity+" hears that the link carries everything",
			func() bool { return estimate > 20e6 || estimate > 0 && stalls.Longest() > stalled })
		wait(settings.Identity+"'s packets are reported", func() bool { return metric(t, c, received) > before+500 })
		// Only packets that are reported by transport-wide numbers carry them.
		if extended, plain := socket.extended.Load(),
			socket.plain.Load(); (extended > 0) != (bob != nil) || (plain > 0) != (bob == nil) {
			t.Errorf("%s was sent %d packets with a number and %d without", settings.Identity, extended, plain)
		}
		if bob == nil {
			bob = s
			sendFrame(t, s.Publisher("desk"), 1, "frame")
			wait("bob's uplink is known", func() bool { return s.Uplink().Estimate > 0 })
		}
	}
	if malformed := metric(t, c, `volsfu_packets_dropped_total{reason="malformed_rtcp"}`); malformed > 0 {
		t.Errorf("%v reports are malformed", malformed)
	}
	for _, s := range bob.Stats() {
		if s.Track.Participant == "alice" && s.Complete == 0 {
			t.Errorf("%v: no frame is complete", s.Track)
		}
	}
}

// reportHeaders is a socket on an emulated network that counts RTCP packets by their unencrypted headers: reports by
// RFC 8888 and transport-wide feedback, from the server and to the server.
type reportHeaders struct {
	net.PacketConn
	received, sent reportCounts
}

type reportCounts struct{ byStream, byNumber atomic.Int64 }

// count counts a datagram. Transport-layer feedback has the type 205, and its formats are 11 (RFC 8888) and 15.
func (c *reportCounts) count(datagram []byte) {
	if len(datagram) < 4 || datagram[1] != 205 {
		return
	}
	switch datagram[0] {
	case 0x80 | 11:
		c.byStream.Add(1)
	case 0x80 | 15:
		c.byNumber.Add(1)
	}
}

func (h *reportHeaders) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := h.PacketConn.ReadFrom(b)
	if err == nil {
		h.received.count(b[:n])
	}
	return n, from, err
}

func (h *reportHeaders) WriteTo(b []byte, to net.Addr) (int, error) {
	h.sent.count(b)
	return h.PacketConn.WriteTo(b, to)
}

// TestReportsByStreamInBothDirections sends media from a publisher to a receiver over access links of 20 Mbit/s. With
// RFC 8888 the publisher is reported to by the server in this form only, and the server by the receiver. Without it all
// reports are transport-wide. Either way the rates of both hops are estimated.
func TestReportsByStreamInBothDirections(t *testing.T) {
	const link = "rate=20Mbit,delay=10ms"
	e := emulate(t, 8)
	stalls := wait.WatchStalls(t)
	known := func(estimate volumetric.Bitrate) bool {
		return estimate > 5e6 || estimate > 0 && stalls.Longest() > stalled
	}
	load := testbed.Load{Name: "body", Tiles: 1, Qualities: 1, FrameBytes: 20_000, Rate: 30}
	for _, form := range []client.Feedback{client.FeedbackCCFB, client.FeedbackTransportCC} {
		room := string(form)
		var peers [2]*testbed.Peer
		var sockets [2]*reportHeaders
		for i, part := range []testbed.Part{
			{Identity: "alice", Loads: []testbed.Load{load}}, {Identity: "bob", Receive: true},
		} {
			_, conn := e.link(t, link, link)
			sockets[i] = &reportHeaders{PacketConn: conn}
			part.Room, part.Feedback, part.Media, part.Deadline = room, form, sockets[i], repairTime
			peers[i] = join(t, e.Conference, part)
		}
		alice, bob := peers[0], peers[1]
		wait.Until(t, room+": the publisher's uplink is estimated",
			func() bool { return known(alice.Session.Uplink().Estimate) })
		wait.Until(t, room+": frames arrive", func() bool { return frames(bob, tile("alice", "body", 0)) > 60 })
		wait.Until(t, room+": the receiver's downlink is estimated",
			func() bool { return known(bob.Bandwidth().Estimate) })
		if estimate := alice.Session.Uplink().Estimate; estimate > 30e6 && stalls.Longest() <= stalled {
			t.Errorf("%s: the uplink's estimate is %v, expected about 20 Mbit/s", room, estimate)
		}
		for hop, counts := range map[string]*reportCounts{
			"the server to the publisher": &sockets[0].received, "the receiver to the server": &sockets[1].sent,
		} {
			agreed, other := &counts.byStream, &counts.byNumber
			if form == client.FeedbackTransportCC {
				agreed, other = other, agreed
			}
			wait.Until(t, room+": "+hop+" sends reports", func() bool { return agreed.Load() >= 10 })
			if n := other.Load(); n > 0 {
				t.Errorf("%s: %s sent %d reports in the other form", room, hop, n)
			}
		}
		for _, p := range peers {
			if err := p.Failure(); err != nil {
				t.Error(err)
			}
		}
	}
	stats := e.Server.Stats()
	if stats.MalformedRTCP > 0 || stats.TransportDropped > 0 || stats.TransportFalseMarks > 0 {
		t.Errorf("%d reports are malformed, %d dropped, %d marks false, expected none", stats.MalformedRTCP,
			stats.TransportDropped, stats.TransportFalseMarks)
	}
}
