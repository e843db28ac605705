package carry

import (
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/lab/direct/stream"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/test/codepoints"
	"github.com/volsfu/volsfu/test/wait"
)

// exchange is a stream from a producer to a consumer. A test steps both.
type exchange struct {
	mu       sync.Mutex
	sender   *stream.Sender
	receiver *stream.Receiver
	frames   uint32
}

// producing receives what the producer's side receives: reports.
type producing struct {
	transport.NoOpSink
	*exchange
}

func (p producing) RTCP(packet []byte, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sender != nil {
		p.sender.RTCP(packet, now, 0)
	}
}

func (p producing) Datagram(datagram []byte, _ netip.AddrPort, _ ecn.Codepoint, now time.Time) {
	p.RTCP(datagram, now)
}

// consuming receives what the consumer's side receives: media.
type consuming struct {
	transport.NoOpSink
	*exchange
}

func (c consuming) Expect(wire stream.Wire) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.receiver = stream.NewReceiver(stream.ReceiverConfig{Wire: wire, Sender: 9})
}

func (c consuming) RTP(_ uint32, packet []byte, info *transport.PacketInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.receiver.RTP(packet, info.ECN, info.At); f != nil {
		f.Release()
	}
}

func (c consuming) Datagram(datagram []byte, _ netip.AddrPort, codepoint ecn.Codepoint, now time.Time) {
	c.RTP(0, datagram, &transport.PacketInfo{At: now, ECN: codepoint})
}

// begin starts the sender.
func (x *exchange) begin(t *testing.T, wire stream.Wire) {
	t.Helper()
	config := stream.SenderConfig{Wire: wire, Congestion: congestion.DefaultConfig(), Estimate: true,
		Pacing: pacing.Default}
	sender, err := stream.NewSender(config, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sender = sender
}

// step sends a frame, and all packets and reports that are due.
func (x *exchange) step(t *testing.T, producer interface{ Send([]stream.Packet) },
	consumer interface{ SendOne([]byte) }) {
	t.Helper()
	x.mu.Lock()
	now := time.Now()
	x.frames++
	frame := stream.Frame{Number: x.frames, Capture: now,
		Data: payload.Prefix{Capture: now}.AppendTo(make([]byte, 0, 4000))[:4000]}
	if err := x.sender.Send(frame, now); err != nil {
		t.Error(err)
	}
	packets, reports := x.sender.Step(now, nil), x.receiver.Step(now, 0, nil)
	x.mu.Unlock()
	producer.Send(packets)
	for _, report := range reports {
		consumer.SendOne(report)
	}
}

// TestCodepointsOnTheWire reads the packets of a producer and a consumer on both transports: RTP leaves as ECT(1) if
// the consumer reports by RFC 8888, RTCP leaves as ECT(1) once such packets have arrived, and other packets leave as
// Not-ECT.
func TestCodepointsOnTheWire(t *testing.T) {
	for _, test := range []struct {
		name, address string
		byStream      bool
	}{{"IPv4", "127.0.0.1", true}, {"IPv6", "::1", true}, {"transport-wide feedback", "127.0.0.1", false}} {
		t.Run(test.name, func(t *testing.T) {
			probe, err := net.ListenPacket("udp", net.JoinHostPort(test.address, "0"))
			if err != nil {
				t.Skipf("skipped: no UDP socket on %s: %v", test.address, err)
			}
			_ = probe.Close()
			tap, rtp := codepoints.Listen(t), ecn.NotECT
			if test.byStream {
				rtp = ecn.ECT1
			}
			t.Run("WebRTC", func(t *testing.T) { wireOfWebRTC(t, tap, test.address, test.byStream, rtp) })
			t.Run("UDP", func(t *testing.T) { wireOfUDP(t, tap, test.address, test.byStream, rtp) })
		})
	}
}

func wireOfWebRTC(t *testing.T, tap *codepoints.Tap, address string, byStream bool, rtp ecn.Codepoint) {
	x := &exchange{}
	ours, theirs := meet(t, address)
	var consumer *WebRTC
	answered := make(chan error, 1)
	go func() {
		var err error
		route := Route{Remote: theirs.Remote(), ByStream: byStream}
		consumer, err = Answer(t.Context(), theirs, theirs.Messages(), route, consuming{exchange: x})
		answered <- err
	}()
	producer, err := Offer(t.Context(), ours, ours.Messages(), Route{Remote: ours.Remote()}, producing{exchange: x})
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	x.begin(t, producer.Wire())
	flow := codepoints.Flow{From: producer.endpoint.Port(), To: consumer.endpoint.Port()}
	wait.Until(t, "media and reports", func() bool {
		x.step(t, producer, consumer)
		media, reports := tap.Flow(flow), tap.Flow(flow.Back())
		return media.Of(codepoints.RTP) >= 20 && reports.Of(codepoints.RTCP) >= 5
	})
	checkFlows(t, tap, flow, rtp)
	if media := tap.Flow(flow); media.Of(codepoints.STUN) == 0 || media.Of(codepoints.DTLS) == 0 {
		t.Errorf("%v left, expected STUN and DTLS", &media)
	}
}

func wireOfUDP(t *testing.T, tap *codepoints.Tap, address string, byStream bool, rtp ecn.Codepoint) {
	x := &exchange{}
	var sides [2]*UDP
	var running sync.WaitGroup
	for i, taker := range []Taker{producing{exchange: x}, consuming{exchange: x}} {
		side, err := OpenUDP(netip.MustParseAddr(address))
		if err != nil {
			t.Fatal(err)
		}
		sides[i] = side
		running.Go(func() {
			if err := side.Run(taker); err != nil {
				t.Error(err)
			}
		})
	}
	defer func() {
		_ = sides[0].Close()
		_ = sides[1].Close()
		running.Wait()
	}()
	wire := stream.Wire{SSRC: 7, RetransmissionSSRC: 8, PayloadType: 96, RetransmissionPayloadType: 97, Extension: 1,
		ByStream: byStream}
	consuming{exchange: x}.Expect(wire)
	x.begin(t, wire)
	flow := codepoints.Flow{From: sides[0].Port(), To: sides[1].Port()}
	sides[0].Aim(netip.AddrPortFrom(netip.MustParseAddr(address), flow.To))
	sides[1].Aim(netip.AddrPortFrom(netip.MustParseAddr(address), flow.From))
	wait.Until(t, "media and reports", func() bool {
		x.step(t, sides[0], sides[1])
		media, reports := tap.Flow(flow), tap.Flow(flow.Back())
		return media.Of(codepoints.RTP) >= 20 && reports.Of(codepoints.RTCP) >= 5
	})
	checkFlows(t, tap, flow, rtp)
}

// checkFlows checks the packets of media and reports.
func checkFlows(t *testing.T, tap *codepoints.Tap, flow codepoints.Flow, rtp ecn.Codepoint) {
	t.Helper()
	media, reports := tap.Flow(flow), tap.Flow(flow.Back())
	t.Logf("%v; %v", &media, &reports)
	if n := media.Protocols[codepoints.RTP][rtp]; n != media.Of(codepoints.RTP) {
		t.Errorf("RTP left as %v, expected %v", media.Protocols[codepoints.RTP], rtp)
	}
	if n := reports.Protocols[codepoints.RTCP][rtp]; n != reports.Of(codepoints.RTCP) {
		t.Errorf("RTCP left as %v, expected %v", reports.Protocols[codepoints.RTCP], rtp)
	}
	for _, counts := range []*codepoints.Counts{&media, &reports} {
		for _, p := range []codepoints.Protocol{codepoints.STUN, codepoints.DTLS, codepoints.Other} {
			if n := counts.Protocols[p][ecn.NotECT]; n != counts.Of(p) {
				t.Errorf("%v left as %v, expected Not-ECT", p, counts.Protocols[p])
			}
		}
	}
}
