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
	ErrStream = errors.New("the other side takes no volumetric video")
)

// WebRTC is one side's peer connection.
type WebRTC struct {
	endpoint *transport.Endpoint
	peer     *transport.Peer
	// outlet is the producer's.
	outlet *transport.Outlet
	wire   stream.Wire
}

// Route says how a peer connection finds its way.
type Route struct {
	// Remote is the other side: on this host, loopback is the way.
	Remote netip.Addr
	// STUN are servers as stun:host:port.
	STUN []string
}

// open makes a peer whose media goes to the sink.
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

// Offer makes the producer's side. Messages of negotiation that the other side sends come by replies; it returns when
// media can flow.
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
		}
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// Sink takes what the producer sends.
type Sink interface {
	transport.Sink
	// Expect says what comes, before anything does.
	Expect(wire stream.Wire)
}

// Answer makes the consumer's side, as Offer does.
func Answer(ctx context.Context, conn *rendezvous.Conn, messages <-chan rendezvous.Message, route Route,
	sink Sink) (*WebRTC, error) {
	w, err := open(route, sink)
	if err != nil {
		return nil, err
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
	w.wire.Extension = w.peer.TransportSequenceID()
	sink.Expect(w.wire)
	if err := conn.Send(rendezvous.Message{Type: rendezvous.TypeAnswer, SDP: sdp}); err != nil {
		return err
	}
	return w.connect(ctx, conn, messages)
}

// connect exchanges answer and candidates until media can flow.
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
	return fmt.Errorf("%w: %s in the midst of negotiation", rendezvous.ErrMessage, m.Type)
}

// events tells the other side of candidates, and whether media can flow.
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

// Watch returns when the connection fails, or the context ends, which is no error. Candidates that come late are told,
// and taken.
func (w *WebRTC) Watch(ctx context.Context, conn *rendezvous.Conn, messages <-chan rendezvous.Message) error {
	for {
		select {
		case m := <-messages:
			// What is wrong with a late candidate does not hurt a connection that is there.
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

// Wire is what was agreed on.
func (w *WebRTC) Wire() stream.Wire { return w.wire }

// Peer tells the round-trip time.
func (w *WebRTC) Peer() *transport.Peer { return w.peer }

// Send sends packets of the producer's stream.
func (w *WebRTC) Send(packets []stream.Packet) {
	for i := range packets {
		// Its loss, should the connection be closing, is the network's kind of loss.
		_ = w.outlet.Queue(&packets[i].Header, packets[i].Payload)
	}
	w.peer.Flush()
}

// SendOne sends an RTCP compound.
func (w *WebRTC) SendOne(compound []byte) {
	raw := rtcp.RawPacket(compound)
	_ = w.peer.WriteRTCP([]rtcp.Packet{&raw})
}

// Close ends the connection.
func (w *WebRTC) Close() {
	_ = w.peer.Close()
	_ = w.endpoint.Close()
}
