package carry

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/pion/rtp"
	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/lab/direct/rendezvous"
	"github.com/volsfu/volsfu/lab/direct/stream"
	"github.com/volsfu/volsfu/test/allocations"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// taker records arriving datagrams.
type taker struct {
	transport.NoOpSink
	mu        sync.Mutex
	datagrams [][]byte
	// codepoints are those with which the datagrams came.
	codepoints []ecn.Codepoint
	from       netip.AddrPort
	come       chan struct{}
}

func newTaker() *taker { return &taker{come: make(chan struct{}, 1000)} }

func (k *taker) Datagram(datagram []byte, from netip.AddrPort, codepoint ecn.Codepoint, _ time.Time) {
	k.mu.Lock()
	k.datagrams, k.from = append(k.datagrams, append([]byte(nil), datagram...)), from
	k.codepoints = append(k.codepoints, codepoint)
	k.mu.Unlock()
	k.come <- struct{}{}
}

func (k *taker) RTP(_ uint32, packet []byte, info *transport.PacketInfo) {
	k.Datagram(packet, netip.AddrPort{}, info.ECN, info.At)
}
func (k *taker) RTCP(packet []byte, now time.Time) {
	k.Datagram(packet, netip.AddrPort{}, ecn.NotECT, now)
}
func (k *taker) Expect(stream.Wire) {}

// expect waits for n datagrams.
func (k *taker) expect(t *testing.T, n int) [][]byte {
	t.Helper()
	for range n {
		select {
		case <-k.come:
		case <-time.After(30 * time.Second):
			t.Fatal("no datagram arrived")
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.datagrams
}

// packets returns packets of a stream with payloads of the given lengths.
func packets(wire stream.Wire, lengths ...int) (list []stream.Packet) {
	for i, length := range lengths {
		list = append(list, stream.Packet{
			Header:  rtp.Header{Version: 2, SSRC: wire.SSRC, PayloadType: wire.PayloadType, SequenceNumber: uint16(i)},
			Payload: bytes.Repeat([]byte{byte(i + 1)}, length),
			// Some runs are divided.
			ECN: []ecn.Codepoint{ecn.NotECT, ecn.ECT1, ecn.ECT1, ecn.ECT0}[i%4],
		})
	}
	return list
}

func check(t *testing.T, got [][]byte, sent []stream.Packet) {
	t.Helper()
	for i := range sent {
		var p rtp.Packet
		if err := p.Unmarshal(got[i]); err != nil || p.SequenceNumber != sent[i].Header.SequenceNumber ||
			!bytes.Equal(p.Payload, sent[i].Payload) {
			t.Errorf("packet %d: got %d bytes with number %d, %v", i, len(p.Payload), p.SequenceNumber, err)
		}
	}
}

// checkCodepoints checks that packets arrived with the codepoints with which they left.
func (k *taker) checkCodepoints(t *testing.T, sent []stream.Packet) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range sent {
		if k.codepoints[i] != sent[i].ECN {
			t.Errorf("packet %d arrived as %v, expected %v", i, k.codepoints[i], sent[i].ECN)
		}
	}
}

// TestUDP: packets of any lengths arrive unchanged, including packets sent as a run.
func TestUDP(t *testing.T) {
	loopback := netip.MustParseAddr("127.0.0.1")
	a, err := OpenUDP(loopback)
	if err != nil {
		t.Fatal(err)
	}
	b, err := OpenUDP(loopback)
	if err != nil {
		t.Fatal(err)
	}
	taker := newTaker()
	var running sync.WaitGroup
	running.Go(func() {
		if err := b.Run(taker); err != nil {
			t.Error(err)
		}
	})
	a.Send(packets(stream.Wire{}, 10)) // nowhere
	a.SendOne([]byte("nowhere"))
	if a.Aimed() {
		t.Error("expected that the destination is unknown")
	}
	a.Aim(netip.AddrPortFrom(loopback, b.Port()))
	sent := packets(stream.Wire{SSRC: 7, PayloadType: 96}, 1100, 1100, 1100, 300, 1100, 1100, 200, 1160, 1160)
	a.Send(sent)
	got := taker.expect(t, len(sent))
	check(t, got, sent)
	taker.checkCodepoints(t, sent)
	taker.mu.Lock()
	if taker.from.Port() != a.Port() {
		t.Errorf("the datagrams came from %v", taker.from)
	}
	taker.mu.Unlock()
	a.SendOne([]byte("report"))
	if got := taker.expect(t, 1); string(got[len(got)-1]) != "report" {
		t.Errorf("got %q", got[len(got)-1])
	}
	_ = b.Close()
	running.Wait()
	// The reader has ended, so no other goroutine allocates.
	if n := allocations.PerCall(20, func() { a.Send(sent) }); n > 1 {
		t.Errorf("%g allocations per run of packets", n)
	}
	_ = a.Close()
}

// meet returns the two ends of a rendezvous.
func meet(t *testing.T, address string) (ours, theirs *rendezvous.Conn) {
	t.Helper()
	l, err := rendezvous.Listen(net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	dialled := make(chan *rendezvous.Conn, 1)
	go func() {
		c, err := rendezvous.Dial(t.Context(), l.Address())
		if err != nil {
			t.Error(err)
		}
		dialled <- c
	}()
	if ours, err = l.Accept(t.Context()); err != nil {
		t.Fatal(err)
	}
	theirs = <-dialled
	t.Cleanup(ours.Close)
	t.Cleanup(theirs.Close)
	return ours, theirs
}

// TestWebRTC: the two sides negotiate streams, and packets pass in both directions.
func TestWebRTC(t *testing.T) {
	ours, theirs := meet(t, "127.0.0.1")
	reports, media := newTaker(), newTaker()
	var consumer *WebRTC
	answered := make(chan error, 1)
	go func() {
		var err error
		consumer, err = Answer(t.Context(), theirs, theirs.Messages(), Route{Remote: theirs.Remote()}, media)
		answered <- err
	}()
	producer, err := Offer(t.Context(), ours, ours.Messages(), Route{Remote: ours.Remote()}, reports)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	own, other := producer.Wire(), consumer.Wire()
	if own.SSRC == 0 || own.SSRC != other.SSRC || own.RetransmissionSSRC != other.RetransmissionSSRC ||
		own.Extension == 0 || own.Extension != other.Extension {
		t.Errorf("the sides negotiated %+v and %+v", own, other)
	}
	sent := packets(own, 1160, 1160, 1160, 40)
	producer.Send(sent)
	check(t, media.expect(t, len(sent)), sent)
	media.checkCodepoints(t, sent)
	// A receiver report without blocks.
	consumer.SendOne([]byte{0x80, 201, 0, 1, 0, 0, 0, 9})
	if got := reports.expect(t, 1); len(got[0]) != 8 || got[0][1] != 201 {
		t.Errorf("got %x", got[0])
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := producer.Watch(ctx, ours, nil); err != nil {
		t.Errorf("expected no error at the end of Watch, got %v", err)
	}
}

// TestUnexpectedMessages: a message other than an offer, and an invalid answer, are errors.
func TestUnexpectedMessages(t *testing.T) {
	messages := make(chan rendezvous.Message, 1)
	messages <- rendezvous.Message{Type: rendezvous.TypeAnswer, SDP: "v=0"}
	if _, err := Answer(t.Context(), nil, messages, Route{Remote: netip.MustParseAddr("127.0.0.1")},
		newTaker()); err == nil {
		t.Error("expected an error for an answer without an offer")
	}
	messages <- rendezvous.Message{Type: rendezvous.TypeOffer, SDP: "nonsense"}
	if _, err := Answer(t.Context(), nil, messages, Route{Remote: netip.MustParseAddr("127.0.0.1")},
		newTaker()); err == nil {
		t.Error("expected an error for an invalid offer")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Answer(ctx, nil, make(chan rendezvous.Message), Route{Remote: netip.MustParseAddr("127.0.0.1")},
		newTaker()); err == nil {
		t.Error("expected an error without an offer")
	}
}
