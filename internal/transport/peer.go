package transport

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Errors of negotiation.
var (
	ErrNoLine    = errors.New("no such media line")
	ErrCandidate = errors.New("invalid ICE candidate")
	ErrSpent     = errors.New("negotiation failed half-way")
)

// rttInterval is how long a round-trip time from ICE's checks is taken as it is; they come every two seconds.
const rttInterval = 500 * time.Millisecond

// Peer is one peer connection. Negotiation is for one goroutine at a time; WriteRTCP, RTT, Events and Close are for any.
type Peer struct {
	api *webrtc.API
	pc  *webrtc.PeerConnection
	// ice is asked for once: to ask takes a lock that Pion holds while it closes, waiting for the goroutines that a Sink is called on.
	ice     *webrtc.ICETransport
	events  *eventList
	lines   map[string]*webrtc.RTPTransceiver
	outlets map[string]*Outlet
	// offer is the last one that was made.
	offer string
	// early are remote candidates that came before the description; trickled counts those since ICE began, or began anew.
	early    []webrtc.ICECandidateInit
	trickled int

	// reached is set once ICE has found the remote peer: before that its statistics must not be asked for, since Pion is still making them.
	reached atomic.Bool
	rtt     roundTrip
	rttAt   atomic.Int64
}

// Line is a media line of an offering peer. Its MID is known once it was offered.
type Line struct {
	transceiver *webrtc.RTPTransceiver
	// Outlet sends on the line; it is nil where the line receives.
	Outlet *Outlet
}

// MID is the line's name in descriptions, empty before it was offered.
func (l *Line) MID() string { return l.transceiver.Mid() }

// AddReceiving adds a line on which the remote peer sends. It takes part in the next offer.
func (p *Peer) AddReceiving(kind volumetric.Kind) (*Line, error) {
	transceiver, err := p.pc.AddTransceiverFromKind(kindOf(kind), webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly})
	if err != nil {
		return nil, fmt.Errorf("add receiving line: %w", err)
	}
	return &Line{transceiver: transceiver}, nil
}

// AddSending adds a line on which this peer sends. It takes part in the next offer.
func (p *Peer) AddSending(kind volumetric.Kind, id string) (*Line, error) {
	outlet := newOutlet(id, kind)
	transceiver, err := p.pc.AddTransceiverFromTrack(outlet, webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionSendonly})
	if err != nil {
		return nil, fmt.Errorf("add sending line: %w", err)
	}
	return &Line{transceiver: transceiver, Outlet: outlet}, nil
}

// Offer makes an offer of all lines and sets it. With restart, ICE begins anew on the same connection.
func (p *Peer) Offer(restart bool) (string, error) {
	if restart {
		p.awaitGathering()
	}
	offer, err := p.pc.CreateOffer(&webrtc.OfferOptions{ICERestart: restart})
	if err != nil {
		return "", fmt.Errorf("create offer: %w", err)
	}
	if err := p.pc.SetLocalDescription(offer); err != nil {
		return "", fmt.Errorf("set local offer: %w", err)
	}
	p.offer = offer.SDP
	if restart {
		p.trickled = 0
	}
	return offer.SDP, nil
}

// Answered takes the remote peer's answer and tells which streams it sends on which line. After an error around ErrDescription the offer still
// waits for a better answer; after one around ErrSpent the connection cannot go on.
func (p *Peer) Answered(description string) (map[string]Streams, error) {
	if err := checkAnswer(p.offer, description); err != nil {
		return nil, err
	}
	streams, err := p.setRemote(webrtc.SDPTypeAnswer, description)
	if err != nil && p.pc.SignalingState() != webrtc.SignalingStateHaveLocalOffer {
		return nil, fmt.Errorf("%w: %w", ErrSpent, err)
	}
	return streams, err
}

// Offered takes the remote peer's offer and tells which streams it sends on which line. Sending may be called before Answer.
func (p *Peer) Offered(description string) (map[string]Streams, error) {
	streams, err := p.setRemote(webrtc.SDPTypeOffer, description)
	if err != nil {
		return nil, err
	}
	for _, transceiver := range p.pc.GetTransceivers() {
		p.lines[transceiver.Mid()] = transceiver
	}
	return streams, nil
}

func (p *Peer) setRemote(kind webrtc.SDPType, description string) (map[string]Streams, error) {
	streams, err := streamsByMID(description)
	if err != nil {
		return nil, err
	}
	if kind == webrtc.SDPTypeOffer && p.pc.RemoteDescription() != nil {
		// It may restart ICE.
		p.awaitGathering()
	}
	if err := p.pc.SetRemoteDescription(webrtc.SessionDescription{Type: kind, SDP: description}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDescription, err)
	}
	// The description is in force now; a candidate that cannot be used is one way less to reach the remote peer.
	for _, candidate := range p.early {
		_ = p.pc.AddICECandidate(candidate)
	}
	p.early = nil
	if kind == webrtc.SDPTypeOffer {
		p.trickled = 0
	}
	return streams, nil
}

// Host candidates are gathered in milliseconds; gatherPatience bounds the wait where a STUN server does not answer.
const (
	gatherPatience = time.Second
	gatherInterval = time.Millisecond
)

// awaitGathering waits until ICE has gathered its candidates. Before that ICE must not begin anew: what gathers reads the credentials that a restart
// writes, without a lock (pion/ice v4.4).
func (p *Peer) awaitGathering() {
	deadline := time.Now().Add(gatherPatience)
	for p.pc.ICEGatheringState() == webrtc.ICEGatheringStateGathering && time.Now().Before(deadline) {
		time.Sleep(gatherInterval)
	}
}

// Sending gives the outlet of a line that the remote peer offered to receive on, and makes it where there is none yet.
func (p *Peer) Sending(mid string) (*Outlet, error) {
	if outlet, ok := p.outlets[mid]; ok {
		return outlet, nil
	}
	transceiver, ok := p.lines[mid]
	if !ok {
		return nil, fmt.Errorf("%w: mid %q", ErrNoLine, mid)
	}
	kind := volumetric.KindVideo
	if transceiver.Kind() == webrtc.RTPCodecTypeAudio {
		kind = volumetric.KindAudio
	}
	outlet := newOutlet("publish-"+mid, kind)
	sender, err := p.api.NewRTPSender(outlet, p.pc.SCTP().Transport())
	if err != nil {
		return nil, fmt.Errorf("mid %q: %w", mid, err)
	}
	if err := transceiver.SetSender(sender, outlet); err != nil {
		return nil, fmt.Errorf("mid %q: %w", mid, err)
	}
	p.outlets[mid] = outlet
	return outlet, nil
}

// Answer makes an answer to the last offer and sets it.
func (p *Peer) Answer() (string, error) {
	answer, err := p.pc.CreateAnswer(nil)
	if err != nil {
		return "", fmt.Errorf("create answer: %w", err)
	}
	if err := p.pc.SetLocalDescription(answer); err != nil {
		return "", fmt.Errorf("set local answer: %w", err)
	}
	return answer.SDP, nil
}

// maxCandidates bounds the remote candidates of one description, in it and after it. Hosts with several addresses of both families, STUN and TURN have
// some twenty; each is sent connectivity checks, wherever it points.
const maxCandidates = 64

// AddCandidate takes a remote candidate. One that comes before the description waits for it.
func (p *Peer) AddCandidate(c Candidate) error {
	if p.trickled == maxCandidates {
		return fmt.Errorf("%w: more than %d", ErrCandidate, maxCandidates)
	}
	p.trickled++
	index := uint16(c.LineIndex)
	candidate := webrtc.ICECandidateInit{Candidate: c.Candidate, SDPMid: &c.MID, SDPMLineIndex: &index}
	if p.pc.RemoteDescription() == nil {
		p.early = append(p.early, candidate)
		return nil
	}
	if err := p.pc.AddICECandidate(candidate); err != nil {
		return fmt.Errorf("%w %q: %w", ErrCandidate, c.Candidate, err)
	}
	return nil
}

// Notify is signalled when events wait to be taken.
func (p *Peer) Notify() <-chan struct{} { return p.events.notify }

// Events takes what has happened since the last call, in order.
func (p *Peer) Events() []Event { return p.events.take() }

// WriteRTCP sends packets as one compound packet. Before the connection is there, nothing is sent.
func (p *Peer) WriteRTCP(packets []rtcp.Packet) error { return p.pc.WriteRTCP(packets) }

// RTT is the round-trip time by the quickest of ICE's latest connectivity checks, 0 while it is unknown. A Sink may ask for it.
func (p *Peer) RTT() time.Duration {
	if !p.reached.Load() {
		return 0
	}
	now := time.Now().UnixNano()
	if at := p.rttAt.Load(); now-at < int64(rttInterval) || !p.rttAt.CompareAndSwap(at, now) {
		return p.rtt.value()
	}
	stats, ok := p.ice.GetSelectedCandidatePairStats()
	if ok {
		p.rtt.add(stats.ResponsesReceived, time.Duration(stats.CurrentRoundTripTime*float64(time.Second)))
	}
	return p.rtt.value()
}

// overflow ends a connection whose remote peer uses more streams than anybody needs: each costs memory for as long as the connection lives.
// Pion's reading goroutine calls it, which closing waits for.
func (p *Peer) overflow() { go func() { _ = p.pc.Close() }() }

// Close ends the connection and frees what it holds.
func (p *Peer) Close() error { return p.pc.Close() }
