package e2e

import (
	"net"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/codepoints"
	"github.com/volsfu/volsfu/test/wait"
)

// The offered payload types of volumetric frames and of Opus.
const ptVolumetric, ptOpus = 96, 111

// needsAddress skips the test if the machine does not have a loopback address.
func needsAddress(t *testing.T, address string) {
	t.Helper()
	conn, err := net.ListenPacket("udp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Skipf("skipped: no UDP socket on %s: %v", address, err)
	}
	_ = conn.Close()
}

// tappedHop is one participant's packets: to the server and from the server.
type tappedHop struct{ up, down codepoints.Counts }

// tappedHops are the hops of a publisher, of a receiver, and of a receiver of frames over data channels that hears
// sound.
type tappedHops struct{ publisher, receiver, channels tappedHop }

// hops returns the hops as far as they can be distinguished: by the payload types that they carry.
func hops(tap *codepoints.Tap, server uint16) (h tappedHops) {
	for _, flow := range tap.Flows(server) {
		if flow.From != server {
			continue
		}
		hop := tappedHop{tap.Flow(flow.Back()), tap.Flow(flow)}
		switch {
		case hop.up.Of(codepoints.RTP) > 0:
			h.publisher = hop
		case hop.down.Payloads[ptVolumetric] != [4]int{}:
			h.receiver = hop
		case hop.down.Of(codepoints.RTP) > 0:
			h.channels = hop
		}
	}
	return h
}

// TestCodepointsOnTheWire reads the packets of a publisher of frames and sound, a receiver, and a receiver of frames
// over data channels: RTP of hops that have agreed on RFC 8888 leaves as ECT(1), and RTCP once such packets have
// arrived. All other packets leave as Not-ECT.
func TestCodepointsOnTheWire(t *testing.T) {
	for _, test := range []struct {
		name, address string
		feedback      client.Feedback
		controller    string
		// up and down are the codepoints of RTP to the server and to the receiver.
		up, down ecn.Codepoint
	}{
		{"IPv4", "127.0.0.1", "", congestion.ControllerAuto, ecn.ECT1, ecn.ECT1},
		{"IPv6", "::1", "", congestion.ControllerAuto, ecn.ECT1, ecn.ECT1},
		{"transport-wide feedback", "127.0.0.1", client.FeedbackTransportCC, congestion.ControllerAuto, ecn.NotECT,
			ecn.NotECT},
		{"a server with GCC", "127.0.0.1", "", congestion.ControllerGCC, ecn.ECT1, ecn.NotECT},
	} {
		t.Run(test.name, func(t *testing.T) {
			needsAddress(t, test.address)
			c := startConference(t, func(c *config.Config) {
				c.Server.Listen, c.Media.Address = net.JoinHostPort(test.address, "0"), test.address
				c.Forward.Congestion.Controller = test.controller
			})
			tap := codepoints.Listen(t)
			speak := publishFrames(t, client.Config{URL: c.Server.URL(), Room: "lab", Identity: "alice",
				Feedback: test.feedback})
			joinAs(t, client.Config{URL: c.Server.URL(), Room: "lab", Identity: "bob", Receive: true,
				Feedback: test.feedback})
			watchData(t, c.Server.URL(), "carol", nil)
			seen := func(counts codepoints.Counts, kinds ...codepoints.Protocol) bool {
				for _, kind := range kinds {
					// Connectivity checks are two seconds apart.
					if n := counts.Of(kind); n < 1 || kind == codepoints.RTCP && n < 10 {
						return false
					}
				}
				return true
			}
			// Reports that leave before the first marked packet has arrived are not marked.
			marked := func(counts codepoints.Counts, as ecn.Codepoint) bool {
				return counts.Protocols[codepoints.RTCP][as] >= 3
			}
			heard := func(counts codepoints.Counts) bool {
				sound := counts.Payloads[ptOpus]
				return sound[ecn.NotECT]+sound[ecn.ECT1] >= 5
			}
			var h tappedHops
			wait.Until(t, "every kind of packet", func() bool {
				speak()
				h = hops(tap, c.Server.MediaPort())
				return seen(h.publisher.up, codepoints.RTP, codepoints.STUN, codepoints.DTLS) &&
					seen(h.publisher.down, codepoints.RTCP, codepoints.DTLS) &&
					seen(h.receiver.down, codepoints.RTP, codepoints.DTLS) &&
					seen(h.receiver.up, codepoints.RTCP, codepoints.STUN) &&
					seen(h.channels.down, codepoints.RTP, codepoints.DTLS) &&
					marked(h.publisher.down, test.up) && marked(h.receiver.up, test.down) &&
					heard(h.publisher.up) && heard(h.receiver.down) && heard(h.channels.down)
			})
			for _, hop := range []struct {
				name string
				tappedHop
				rtp ecn.Codepoint
			}{
				{"publisher", h.publisher, test.up}, {"receiver", h.receiver, test.down},
				{"receiver over data channels", h.channels, ecn.NotECT},
			} {
				media, reports := &hop.up, &hop.down
				if hop.name != "publisher" {
					media, reports = reports, media
				}
				t.Logf("%s: %v; %v", hop.name, media, reports)
				if n := media.Protocols[codepoints.RTP][hop.rtp]; n != media.Of(codepoints.RTP) {
					t.Errorf("%s: RTP left as %v, expected %v", hop.name, media.Protocols[codepoints.RTP], hop.rtp)
				}
				for _, counts := range []*codepoints.Counts{media, reports} {
					for _, p := range []codepoints.Protocol{codepoints.STUN, codepoints.DTLS, codepoints.Other} {
						if n := counts.Protocols[p][ecn.NotECT]; n != counts.Of(p) {
							t.Errorf("%s: %v left as %v, expected Not-ECT", hop.name, p, counts.Protocols[p])
						}
					}
				}
				// Reports that precede the first packet leave as Not-ECT, as do those of the side that sends media.
				rtcp := reports.Protocols[codepoints.RTCP]
				if rtcp[hop.rtp] < 3 && reports.Of(codepoints.RTCP) > 0 || rtcp[ecn.ECT0]+rtcp[ecn.CE] > 0 ||
					rtcp[ecn.ECT1] > 0 && hop.rtp == ecn.NotECT {
					t.Errorf("%s: RTCP left as %v, expected %v", hop.name, rtcp, hop.rtp)
				}
			}
		})
	}
}

// publishFrames joins a room with frames and sound, and returns a function that sends some of both if the last ones are
// older than 10 ms.
func publishFrames(t *testing.T, settings client.Config) (send func()) {
	t.Helper()
	settings.Publications = []volumetric.Publication{
		body(1, 1).Publication(),
		{Name: "voice", Kind: volumetric.KindAudio, Mode: volumetric.ModeAlternatives,
			Codec: volumetric.Codec{MIMEType: volumetric.MIMEOpus, ClockRate: 48000},
			Tiles: make([]volumetric.Tile, 1), Qualities: make([]volumetric.QualityLevel, 1)},
	}
	s := joinAs(t, settings)
	number, last := uint32(0), time.Time{}
	return func() {
		now := time.Now()
		if now.Sub(last) < 10*time.Millisecond {
			return
		}
		last = now
		// Before the connection, and while nobody receives, nothing is sent.
		taken, _ := s.Publisher("body").WriteFrame(0, 0, client.OutgoingFrame{Number: number, Capture: now,
			Codec: [4]byte{'t', 'e', 's', 't'}, Data: make([]byte, 5000)})
		if taken {
			number++
		}
		_, _ = s.Publisher("voice").WritePackets(0, 0, now, [][]byte{{0xf8, 0xff, 0xfe}})
	}
}
