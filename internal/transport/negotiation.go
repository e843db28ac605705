package transport

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/internal/transport/datachannels"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrDescription is wrapped with the error in a session description.
var ErrDescription = description.ErrDescription

// Streams are the SSRCs that a remote peer uses on one media line.
type Streams = description.Streams

// firstMID is the mid of the first line of every description that this package makes.
const firstMID = "0"

// negotiation is the negotiated state of a peer. negotiation belongs to the negotiating goroutine.
type negotiation struct {
	// session and version are the numbers in this side's descriptions (RFC 3264 section 8).
	session, version uint64
	// lines are the lines that an offering peer has added, in the order of their mids.
	lines []*Line
	// offer is the last offer made or received.
	offer *description.Description
	// outlets are the outlets of an answering peer, by mid.
	outlets map[string]*Outlet
	// byStream is set if answers accept RFC 8888 reports when the offer has them.
	byStream bool
	// forwards is set if answers are those of a side that forwards.
	forwards bool
}

func newNegotiation() negotiation {
	// 62 bits, so that a reader of signed numbers sees a positive one (RFC 8829 section 5.2.1).
	return negotiation{session: rand.Uint64() >> 2, outlets: make(map[string]*Outlet)}
}

// Line is a media line of an offering peer.
type Line struct {
	mid  string
	kind volumetric.Kind
	// Outlet sends on the line. Outlet is nil if the line receives.
	Outlet *Outlet
}

// MID returns the line's mid.
func (l *Line) MID() string { return l.mid }

// AddReceiving adds a line on which the remote peer sends. The line is part of the next offer.
func (p *Peer) AddReceiving(kind volumetric.Kind) (*Line, error) { return p.addLine(kind, nil), nil }

// AddSending adds a line on which this peer sends. The line is part of the next offer.
func (p *Peer) AddSending(kind volumetric.Kind, id string) (*Line, error) {
	return p.addLine(kind, newOutlet(p, kind, id)), nil
}

// AddData adds a line with data channels, which the remote peer opens. The line is part of the first offer. Messages go
// to the peer's sink.
func (p *Peer) AddData() { p.addLine(description.KindData, nil) }

// AddChannel adds a data channel with a label. The channel opens once the remote peer is connected and has accepted the
// line with data channels. No further offer is needed. From now on this peer makes RFC 8888 reports of what is
// acknowledged on its channels, so packets of other lines are reported in the same form (ReportsByStream).
func (p *Peer) AddChannel(label string) *datachannels.Channel { return p.channels.Add(label) }

// AddCopies adds a data channel for copies of messages, unordered and without retransmissions. It opens like a channel
// of AddChannel. Answers of a peer with channels accept the line with data channels.
func (p *Peer) AddCopies(label string) *datachannels.Copies { return p.channels.AddCopies(label) }

// Reply sends a message on the data channel that the remote peer opened with a label. The message may be lost. Reply is
// safe for any goroutine.
func (p *Peer) Reply(label string, message []byte) { p.channels.Reply(label, message) }

func (n *negotiation) addLine(kind volumetric.Kind, outlet *Outlet) *Line {
	line := &Line{mid: strconv.Itoa(len(n.lines)), kind: kind, Outlet: outlet}
	n.lines = append(n.lines, line)
	return line
}

// newOutlet makes an outlet that is not bound yet.
func newOutlet(p *Peer, kind volumetric.Kind, id string) *Outlet {
	o := &Outlet{peer: p, id: id, streams: Streams{SSRC: newSSRC()}}
	if kind == volumetric.KindVideo {
		o.streams.Retransmission = newSSRC()
	}
	return o
}

// newSSRC chooses an SSRC at random (RFC 3550 section 8.1). 0 stands for no SSRC and is never chosen.
func newSSRC() uint32 { return 1 + rand.Uint32N(1<<32-1) }

// Offer makes an offer of all lines and sets it. With restart, ICE restarts on the same connection.
func (p *Peer) Offer(restart bool) (string, error) {
	if restart && p.agent.begun {
		if err := p.agent.restart(); err != nil {
			return "", err
		}
	}
	local, err := p.agent.localTransport()
	if err != nil {
		return "", err
	}
	local.Role = description.RoleActpass
	p.version++
	offer := &description.Description{SessionID: p.session, Version: p.version, Transport: local}
	// The lines are kept until the next offer.
	offer.Lines = make([]description.Line, 0, len(p.lines))
	for _, l := range p.lines {
		line := description.Line{MID: l.mid, Kind: l.kind, Direction: description.DirectionRecvOnly}
		line.Codecs, line.Extensions = description.Offered(l.kind)
		if l.kind == description.KindData {
			line.Direction, line.DataPort = description.DirectionSendRecv, description.DataPort
		} else {
			// Chromium accepts RFC 8888 reports on all lines with RTP or on none.
			line.CongestionFeedback = true
		}
		if l.Outlet != nil {
			line.Direction, line.Streams, line.Stream = description.DirectionSendOnly, l.Outlet.streams, l.Outlet.id
		}
		offer.Lines = append(offer.Lines, line)
	}
	p.offer = offer
	return offer.Marshal(), p.agent.gather()
}

// LastOffer returns the last offer that Offer has made, "" if there is none. It makes the text again: the text is
// several times as long as the state that it is made from.
func (n *negotiation) LastOffer() string {
	if n.offer == nil {
		return ""
	}
	return n.offer.Marshal()
}

// Answered applies the remote peer's answer and returns the streams that the remote peer sends, by mid. After an error
// that wraps ErrDescription, the offer still waits for an answer. After an error that wraps ErrSpent, the connection
// cannot continue.
func (p *Peer) Answered(text string) (map[string]Streams, error) {
	answer, err := description.Parse(text)
	if err != nil {
		return nil, err
	}
	if p.offer == nil {
		return nil, fmt.Errorf("%w: an answer without an offer", ErrDescription)
	}
	if err := description.CheckAnswer(p.offer, answer); err != nil {
		return nil, err
	}
	for _, l := range answer.Lines {
		if l.Kind == description.KindData && !l.Rejected {
			p.channels.SetAgreed()
		}
	}
	if err := p.agent.setRemote(answer.Transport, true); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSpent, err)
	}
	p.transportSequence.Store(uint32(transportSequence(answer)))
	p.reportsByStream.Store(answer.ReportsByStream())
	p.acceptsByStream.Store(answer.AcceptsReportsByStream())
	for i, l := range p.lines[:len(answer.Lines)] {
		if l.Outlet != nil {
			l.Outlet.bind(taken(answer.Lines[i]))
		}
	}
	return streamsOf(answer), nil
}

// transportSequence returns the identifier of the header extension with the transport-wide sequence number, 0 if it is
// not negotiated. An identifier has the same meaning on all lines of a bundle (RFC 8843 section 9.1).
func transportSequence(d *description.Description) uint8 {
	for _, line := range d.Lines {
		for _, extension := range line.Extensions {
			if extension.URI == description.TransportWideCC && !line.Rejected {
				return uint8(extension.ID)
			}
		}
	}
	return 0
}

// taken returns the codecs that the describing side receives on a line, none if it receives nothing.
func taken(line description.Line) []description.Codec {
	if line.Rejected || !line.Direction.Receives() {
		return nil
	}
	return line.Codecs
}

// streamsOf returns the streams that the describing side sends, by mid.
func streamsOf(d *description.Description) map[string]Streams {
	streams := make(map[string]Streams)
	for _, line := range d.Lines {
		if !line.Rejected && line.Streams.SSRC != 0 && line.Direction.Sends() {
			streams[line.MID] = line.Streams
		}
	}
	return streams
}

// Offered sets the remote peer's offer and returns the streams that the remote peer sends, by mid. Sending may be
// called before Answer.
func (n *negotiation) Offered(text string) (map[string]Streams, error) {
	offer, err := description.Parse(text)
	if err != nil {
		return nil, err
	}
	n.offer = offer
	return streamsOf(offer), nil
}

// OfferedToForwarder sets the remote peer's offer, of which the caller may have removed codecs. Answers are those of a
// side that forwards (description.AnswerAsForwarder).
func (n *negotiation) OfferedToForwarder(offer *description.Description) {
	n.offer, n.forwards = offer, true
}

// RemoteRestarted changes the ICE credentials of the remote peer's offer. The next answer restarts ICE.
func (n *negotiation) RemoteRestarted(ufrag, password string) {
	offer := *n.offer
	offer.Transport.Ufrag, offer.Transport.Password, offer.Transport.Candidates = ufrag, password, nil
	n.offer = &offer
}

// Sending returns the outlet of a line that the remote peer offered to receive on. The first call makes the outlet. The
// error wraps ErrNoLine.
func (p *Peer) Sending(mid string) (*Outlet, error) {
	if outlet, ok := p.outlets[mid]; ok {
		return outlet, nil
	}
	line := p.offered(mid)
	if line == nil {
		return nil, fmt.Errorf("%w: mid %q", ErrNoLine, mid)
	}
	outlet := newOutlet(p, line.Kind, "publish-"+mid)
	p.outlets[mid] = outlet
	return outlet, nil
}

// offered returns a line of the last offer, nil if there is none.
func (n *negotiation) offered(mid string) *description.Line {
	if n.offer == nil {
		return nil
	}
	for i := range n.offer.Lines {
		if line := &n.offer.Lines[i]; line.MID == mid && !line.Rejected {
			return line
		}
	}
	return nil
}

// AddCandidate adds a remote candidate. A candidate that arrives before the description waits for the description.
// Descriptions and AddCandidate may add description.MaxCandidates candidates in all until ICE restarts. The error for a
// further candidate wraps ErrCandidate.
func (p *Peer) AddCandidate(c Candidate) error { return p.agent.name(c.Candidate) }

// PreferReportsByStream makes answers choose RFC 8888 reports in place of transport-wide feedback, in both directions,
// on the lines for which the offer has them. It must be called before the first answer.
func (n *negotiation) PreferReportsByStream() { n.byStream = true }

// Answer makes an answer to the last offer and sets it.
func (p *Peer) Answer() (string, error) {
	answer, err := p.answer()
	if err != nil {
		return "", err
	}
	return answer.Marshal(), nil
}

// CompleteAnswer is Answer for remote peers to which no candidates can be sent later: it waits until this side's
// candidates are gathered, at most for gatherPatience.
func (p *Peer) CompleteAnswer() (*description.Description, error) {
	answer, err := p.answer()
	if err != nil {
		return nil, err
	}
	p.agent.awaitGathering()
	answer.Transport.Candidates = p.agent.local.all()
	answer.Transport.EndOfCandidates = p.agent.gathered.Load()
	return answer, nil
}

func (p *Peer) answer() (*description.Description, error) {
	if p.offer == nil {
		return nil, fmt.Errorf("%w: an answer without an offer", ErrDescription)
	}
	sending := make(map[string]description.Sending)
	for mid, outlet := range p.outlets {
		sending[mid] = description.Sending{Streams: outlet.streams, Stream: outlet.id}
	}
	answerOf := description.Answer
	if p.forwards {
		answerOf = description.AnswerAsForwarder
	}
	answer, err := answerOf(p.offer, sending)
	if err != nil {
		return nil, err
	}
	if p.byStream {
		description.TakeCongestionFeedback(p.offer, answer)
	}
	if p.channels.Any() && description.TakeData(p.offer, answer) {
		p.channels.SetAgreed()
	}
	if p.agent.begun && p.offer.Transport.Ufrag != p.agent.remote.Ufrag {
		if err := p.agent.restart(); err != nil {
			return nil, err
		}
	}
	local, err := p.agent.localTransport()
	if err != nil {
		return nil, err
	}
	local.Role = answer.Transport.Role
	p.version++
	answer.SessionID, answer.Version, answer.Transport = p.session, p.version, local
	remote := p.offer.Transport
	// The DTLS roles are those of the answer.
	remote.Role = description.RolePassive
	if local.Role == description.RolePassive {
		remote.Role = description.RoleActive
	}
	if err := p.agent.gather(); err != nil {
		return nil, err
	}
	// The side with all of ICE controls one that only answers checks (RFC 8445 section 6.1.1).
	if err := p.agent.setRemote(remote, remote.Lite); err != nil {
		return nil, err
	}
	p.transportSequence.Store(uint32(transportSequence(answer)))
	// The remote peer reports arrivals of what the answerer sends, and accepts reports of what the answerer receives.
	p.reportsByStream.Store(answer.AcceptsReportsByStream())
	p.acceptsByStream.Store(answer.ReportsByStream())
	for i, line := range answer.Lines {
		if outlet := p.outlets[line.MID]; outlet != nil && line.Direction.Sends() && !line.Rejected {
			outlet.bind(answer.Lines[i].Codecs)
		}
	}
	return answer, nil
}
