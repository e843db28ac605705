package carry

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/lab/direct/rendezvous"
	"github.com/volsfu/volsfu/lab/direct/stream"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Errors of peer connections.
var (
	ErrFailed = errors.New("the peer connection failed")
	ErrStream = errors.New("the other side does not accept volumetric video")
)

// WebRTC is the peer connection of one side.
type WebRTC struct {
	endpoint *transport.Endpoint
	peer     *transport.Peer
	// outlet is set at the producer.
	outlet *transport.Outlet
	wire   stream.Wire
}

// Route has the settings for finding a network path.
type Route struct {
	// Remote is the address of the other side. If it is on this host, loopback is used.
	Remote netip.Addr
	// STUN lists servers as stun:host:port.
	STUN []string
	// ByStream makes the consumer report arrivals by SSRC and sequence number (RFC 8888).
	ByStream bool
}

// open returns a peer whose received media is delivered to the sink.
func open(route Route, sink transport.Sink) (*WebRTC, error) {
	config := transport.ClientConfig()
	config.STUNServers = route.STUN
	if route.Remote.IsLoopback() {
		config.Address = route.Remote.String()
	}
	endpoint, err := transport.Listen(config)
	if err != nil {
		return nil, err
	}
	peer, err := endpoint.NewPeer(sink)
	if err != nil {
		_ = endpoint.Close()
		return nil, err
	}
	return &WebRTC{endpoint: endpoint, peer: peer}, nil
}

// Offer creates the producer's side. The other side's negotiation messages arrive in replies. Offer returns when media
// can flow.
func Offer(ctx context.Context, conn *rendezvous.Conn, replies <-chan rendezvous.Message, route Route,
	sink transport.Sink) (*WebRTC, error) {
	w, err := open(route, sink)
	if err != nil {
		return nil, err
	}
	line, err := w.peer.AddSending(volumetric.KindVideo, "direct")
	if err == nil {
		w.outlet = line.Outlet
		var sdp string
		if sdp, err = w.peer.Offer(false); err == nil {
			err = conn.Send(rendezvous.Message{Type: rendezvous.TypeOffer, SDP: sdp})
		}
	}
	if err == nil {
		err = w.connect(ctx, conn, replies)
	}
	if err == nil {
		media, retransmission, ok := w.outlet.PayloadType(volumetric.MIMEVolumetric)
		if !ok {
			err = ErrStream
		}
		w.wire = stream.Wire{
			SSRC: w.outlet.SSRC(), RetransmissionSSRC: w.outlet.RetransmissionSSRC(),
			PayloadType: media, RetransmissionPayloadType: retransmission, Extension: w.peer.TransportSequenceID(),
			ByStream: w.peer.ReportsByStream(),
		}
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// Sink receives the producer's media.
type Sink interface {
	transport.Sink
	// Expect is called with the streams before any media arrives.
	Expect(wire stream.Wire)
}

// Answer creates the consumer's side, in the same way as Offer.
func Answer(ctx context.Context, conn *rendezvous.Conn, messages <-chan rendezvous.Message, route Route,
	sink Sink) (*WebRTC, error) {
	w, err := open(route, sink)
	if err != nil {
		return nil, err
	}
	if route.ByStream {
		w.peer.PreferReportsByStream()
	}
	if err := w.answer(ctx, conn, messages, sink); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

func (w *WebRTC) answer(ctx context.Context, conn *rendezvous.Conn, messages <-chan rendezvous.Message,
	sink Sink) error {
	var offer rendezvous.Message
	select {
	case offer = <-messages:
	case <-ctx.Done():
		return ctx.Err()
	}
	if offer.Type != rendezvous.TypeOffer {
		return fmt.Errorf("%w: %s, expected an offer", rendezvous.ErrMessage, offer.Type)
	}
	streams, err := w.peer.Offered(offer.SDP)
	if err != nil {
		return err
	}
	for _, s := range streams {
		w.wire.SSRC, w.wire.RetransmissionSSRC = s.SSRC, s.Retransmission
	}
	if len(streams) != 1 || w.wire.SSRC == 0 {
		return fmt.Errorf("%w: %d streams offered, expected one", rendezvous.ErrMessage, len(streams))
	}
	sdp, err := w.peer.Answer()
	if err != nil {
		return err
	}
	w.wire.Extension, w.wire.ByStream = w.peer.TransportSequenceID(), w.peer.AcceptsReportsByStream()
	sink.Expect(w.wire)
	if err := conn.Send(rendezvous.Message{Type: rendezvous.TypeAnswer, SDP: sdp}); err != nil {
		return err
	}
	return w.connect(ctx, conn, messages)
}

// connect exchanges the answer and candidates until media can flow.
func (w *WebRTC) connect(ctx context.Context, conn *rendezvous.Conn, messages <-chan rendezvous.Message) error {
	for {
		select {
		case m := <-messages:
			if err := w.negotiate(m); err != nil {
				return err
			}
		case <-w.peer.Notify():
			connected, err := w.events(conn)
			if connected || err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *WebRTC) negotiate(m rendezvous.Message) error {
	switch m.Type {
	case rendezvous.TypeAnswer:
		_, err := w.peer.Answered(m.SDP)
		return err
	case rendezvous.TypeCandidate:
		return w.peer.AddCandidate(transport.Candidate{Candidate: m.Candidate.Candidate, MID: m.Candidate.MID,
			LineIndex: m.Candidate.LineIndex})
	}
	return fmt.Errorf("%w: %s during negotiation", rendezvous.ErrMessage, m.Type)
}

// events sends candidates to the other side. It reports whether media can flow.
func (w *WebRTC) events(conn *rendezvous.Conn) (connected bool, err error) {
	for _, e := range w.peer.Events() {
		if e.Candidate != nil {
			own := rendezvous.Candidate{Candidate: e.Candidate.Candidate, MID: e.Candidate.MID,
				LineIndex: e.Candidate.LineIndex}
			if err := conn.Send(rendezvous.Message{Type: rendezvous.TypeCandidate, Candidate: &own}); err != nil {
				return false, err
			}
		}
		switch e.State {
		case transport.StateConnected:
			connected = true
		case transport.StateFailed, transport.StateClosed:
			return false, ErrFailed
		}
	}
	return connected, nil
}

// Watch returns when the connection fails or the context ends, which is not an error. Until then it exchanges late
// candidates.
func (w *WebRTC) Watch(ctx context.Context, conn *rendezvous.Conn, messages <-chan rendezvous.Message) error {
	for {
		select {
		case m := <-messages:
			// An invalid late candidate does not affect an established connection.
			_ = w.negotiate(m)
		case <-w.peer.Notify():
			if _, err := w.events(conn); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// Wire returns the negotiated streams.
func (w *WebRTC) Wire() stream.Wire { return w.wire }

// Peer returns the peer connection, which has the round-trip time.
func (w *WebRTC) Peer() *transport.Peer { return w.peer }

// Send sends packets of the producer's stream.
func (w *WebRTC) Send(packets []stream.Packet) {
	for i := range packets {
		w.peer.SetECN(packets[i].ECN)
		// If the connection is closing, the packet is lost as it would be in the network.
		_ = w.outlet.Queue(&packets[i].Header, packets[i].Payload)
	}
	w.peer.Flush()
}

// SendOne sends an RTCP compound packet.
func (w *WebRTC) SendOne(compound []byte) {
	raw := rtcp.RawPacket(compound)
	_ = w.peer.WriteRTCP([]rtcp.Packet{&raw})
}

// Close closes the connection.
func (w *WebRTC) Close() {
	_ = w.peer.Close()
	_ = w.endpoint.Close()
}
