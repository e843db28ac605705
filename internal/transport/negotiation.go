package transport

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/internal/transport/datachannels"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrDescription is wrapped with what is wrong in a session description.
var ErrDescription = description.ErrDescription

// Streams are the SSRCs that a remote peer sends on one media line.
type Streams = description.Streams

// firstMID names the first line of every description that we make.
const firstMID = "0"

// negotiation is what a peer has agreed on so far. It belongs to the goroutine that negotiates.
type negotiation struct {
	// session and version are those of our descriptions (RFC 3264 section 8).
	session, version uint64
	// lines are those that an offering peer has added, in the order of their mids.
	lines []*Line
	// offer is the last one that was made, or that came.
	offer *description.Description
	// outlets are those of an answering peer, by mid.
	outlets map[string]*Outlet
	// byStream says that answers take reports by RFC 8888 where they are offered.
	byStream bool
}

func newNegotiation() negotiation {
	// 62 bits, so that it is a positive number for whoever reads it as a signed one (RFC 8829 section 5.2.1).
	return negotiation{session: rand.Uint64() >> 2, outlets: make(map[string]*Outlet)}
}

// Line is a media line of an offering peer.
type Line struct {
	mid  string
	kind volumetric.Kind
	// Outlet sends on the line; it is nil where the line receives.
	Outlet *Outlet
}

// MID is the line's name in descriptions.
func (l *Line) MID() string { return l.mid }

// AddReceiving adds a line on which the remote peer sends. It takes part in the next offer.
func (p *Peer) AddReceiving(kind volumetric.Kind) (*Line, error) { return p.addLine(kind, nil), nil }

// AddSending adds a line on which this peer sends. It takes part in the next offer.
func (p *Peer) AddSending(kind volumetric.Kind, id string) (*Line, error) {
	return p.addLine(kind, p.newOutlet(kind, id)), nil
}

// AddData adds a line with data channels, which the remote peer opens. The line takes part in the first offer.
// Messages go to the peer's sink.
func (p *Peer) AddData() { p.addLine(description.KindData, nil) }

// AddChannel adds a data channel under a label, which opens once the remote peer is connected and has taken the line
// with data channels. It needs no offer beyond the one with that line. Packets of other lines are reported by stream
// from then on (ReportsByStream): a peer that sends on channels makes reports of what is acknowledged.
func (p *Peer) AddChannel(label string) *datachannels.Channel { return p.channels.Add(label) }

func (p *Peer) addLine(kind volumetric.Kind, outlet *Outlet) *Line {
	line := &Line{mid: strconv.Itoa(len(p.lines)), kind: kind, Outlet: outlet}
	p.lines = append(p.lines, line)
	return line
}

// newOutlet makes an outlet that waits for its binding.
func (p *Peer) newOutlet(kind volumetric.Kind, id string) *Outlet {
	o := &Outlet{peer: p, id: id, streams: Streams{SSRC: newSSRC()}}
	if kind == volumetric.KindVideo {
		o.streams.Retransmission = newSSRC()
	}
	return o
}

// newSSRC chooses one at random (RFC 3550 section 8.1). 0 stands for none.
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
	for _, l := range p.lines {
		line := description.Line{MID: l.mid, Kind: l.kind, Direction: description.DirectionRecvOnly}
		line.Codecs, line.Extensions = description.Offered(l.kind)
		if l.kind == description.KindData {
			line.Direction, line.DataPort = description.DirectionSendRecv, description.DataPort
		}
		if l.Outlet != nil {
			line.Direction, line.Streams, line.Stream = description.DirectionSendOnly, l.Outlet.streams, l.Outlet.id
			line.CongestionFeedback = true
		}
		offer.Lines = append(offer.Lines, line)
	}
	p.offer = offer
	return offer.Marshal(), p.agent.gather()
}

// Answered takes the remote peer's answer and tells which streams it sends on which line. After an error around
// ErrDescription the offer still waits for a better answer; after one around ErrSpent the connection cannot go on.
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
	for i, l := range p.lines[:len(answer.Lines)] {
		if l.Outlet != nil {
			l.Outlet.bind(taken(answer.Lines[i]))
		}
	}
	return streamsOf(answer), nil
}

// transportSequence finds the header extension that numbers all packets of the connection, 0 where it is not agreed on.
// One identifier means the same on all lines of a bundle (RFC 8843 section 9.1).
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

// taken are the codecs that the describing side receives on a line, none where it receives nothing.
func taken(line description.Line) []description.Codec {
	if line.Rejected || !line.Direction.Receives() {
		return nil
	}
	return line.Codecs
}

// streamsOf lists what the describing side sends, by mid.
func streamsOf(d *description.Description) map[string]Streams {
	streams := make(map[string]Streams)
	for _, line := range d.Lines {
		if !line.Rejected && line.Streams.SSRC != 0 && line.Direction.Sends() {
			streams[line.MID] = line.Streams
		}
	}
	return streams
}

// Offered takes the remote peer's offer and tells which streams it sends on which line. Sending may be called before
// Answer.
func (p *Peer) Offered(text string) (map[string]Streams, error) {
	offer, err := description.Parse(text)
	if err != nil {
		return nil, err
	}
	p.offer = offer
	return streamsOf(offer), nil
}

// Sending gives the outlet of a line that the remote peer offered to receive on, and makes it where there is none yet.
func (p *Peer) Sending(mid string) (*Outlet, error) {
	if outlet, ok := p.outlets[mid]; ok {
		return outlet, nil
	}
	line := p.offered(mid)
	if line == nil {
		return nil, fmt.Errorf("%w: mid %q", ErrNoLine, mid)
	}
	outlet := p.newOutlet(line.Kind, "publish-"+mid)
	p.outlets[mid] = outlet
	return outlet, nil
}

// offered finds a line of the last offer, nil where there is none.
func (p *Peer) offered(mid string) *description.Line {
	if p.offer == nil {
		return nil
	}
	for i := range p.offer.Lines {
		if line := &p.offer.Lines[i]; line.MID == mid && !line.Rejected {
			return line
		}
	}
	return nil
}

// AddCandidate takes a remote candidate. One that comes before the description waits for it. Descriptions and this
// method may name description.MaxCandidates candidates in all until ICE restarts; the error of another one wraps
// ErrCandidate.
func (p *Peer) AddCandidate(c Candidate) error { return p.agent.name(c.Candidate) }

// PreferReportsByStream makes answers take reports of arrivals by RFC 8888 where they are offered, in place of
// transport-wide feedback. It is to be called before the first answer.
func (p *Peer) PreferReportsByStream() { p.byStream = true }

// Answer makes an answer to the last offer and sets it.
func (p *Peer) Answer() (string, error) {
	if p.offer == nil {
		return "", fmt.Errorf("%w: an answer without an offer", ErrDescription)
	}
	sending := make(map[string]description.Sending)
	for mid, outlet := range p.outlets {
		sending[mid] = description.Sending{Streams: outlet.streams, Stream: outlet.id}
	}
	answer, err := description.Answer(p.offer, sending)
	if err != nil {
		return "", err
	}
	if p.byStream {
		description.TakeCongestionFeedback(p.offer, answer)
	}
	if p.agent.begun && p.offer.Transport.Ufrag != p.agent.remote.Ufrag {
		if err := p.agent.restart(); err != nil {
			return "", err
		}
	}
	local, err := p.agent.localTransport()
	if err != nil {
		return "", err
	}
	local.Role = answer.Transport.Role
	p.version++
	answer.SessionID, answer.Version, answer.Transport = p.session, p.version, local
	remote := p.offer.Transport
	// The handshake goes by what the answer says of the roles.
	remote.Role = description.RolePassive
	if local.Role == description.RolePassive {
		remote.Role = description.RoleActive
	}
	if err := p.agent.gather(); err != nil {
		return "", err
	}
	if err := p.agent.setRemote(remote, false); err != nil {
		return "", err
	}
	p.transportSequence.Store(uint32(transportSequence(answer)))
	p.reportsByStream.Store(answer.ReportsByStream())
	for i, line := range answer.Lines {
		if outlet := p.outlets[line.MID]; outlet != nil && line.Direction.Sends() && !line.Rejected {
			outlet.bind(answer.Lines[i].Codecs)
		}
	}
	return answer.Marshal(), nil
}
