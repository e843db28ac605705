package peer

import (
	"errors"
	"slices"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/signal"
)

// A client of WHIP or WHEP offers once. The lines of its offer never change: the tracks that the client publishes are
// those of the lines on which it sends, one line of each kind, and the slots are the lines on which it receives.

// Answered is an answer to a client's offer. ID is the id of the request that restarted ICE, empty for the first
// answer, which alone has lines and tracks.
type Answered struct {
	ID  string
	SDP string
	// Lines are the slots, Streams the SSRCs of tracks. Tracks without an SSRC have a name in their packets.
	Lines   []subscriber.Line
	Streams map[Track]transport.Streams
	Names   map[Track]ingress.Name
	// Extensions has the header extensions with names.
	Extensions ingress.NameExtensions
}

// errNotOffered means that an offer has no line for a track. The tracks are made from the lines of the offer, so that
// each track has a line, unless the connection does not accept the line.
var errNotOffered = errors.New("the offer has no line for a track")

// answerOffer answers the client's offer, once.
func (c *Connection) answerOffer() error {
	if c.answered {
		return nil
	}
	c.answered = true
	c.peer.OfferedToForwarder(c.config.Offer)
	var lines []subscriber.Line
	for i := range c.config.Offer.Lines {
		l := &c.config.Offer.Lines[i]
		if l.Rejected || l.Kind == description.KindData || !l.Direction.Receives() {
			continue
		}
		outlet, err := c.peer.Sending(l.MID)
		if err != nil {
			return err
		}
		lines = append(lines, subscriber.Line{MID: l.MID, Kind: l.Kind, Outlet: outlet})
	}
	answer, err := c.peer.CompleteAnswer()
	if err != nil {
		return err
	}
	answered := &Answered{SDP: answer.Marshal(), Lines: lines, Streams: make(map[Track]transport.Streams),
		Names: make(map[Track]ingress.Name)}
	for _, track := range c.wanted.Publish {
		if err := answered.source(track, c.config.Offer, answer); err != nil {
			return err
		}
	}
	c.owner.OfferAnswered(answered)
	return nil
}

// source finds the packets of a track in the offer.
func (a *Answered) source(track Track, offer, answer *description.Description) error {
	i := slices.IndexFunc(offer.Lines, func(l description.Line) bool {
		return l.Kind == track.Kind && !l.Rejected && l.Direction.Sends()
	})
	if i < 0 || answer.Lines[i].Rejected {
		return errNotOffered
	}
	line := &offer.Lines[i]
	switch layers := line.Layers; {
	case len(layers) > 0 && int(track.Quality) < len(layers):
		a.Names[track] = ingress.Name{Layer: layers[track.Quality].ID}
	case track.Quality != 0:
		return errNotOffered
	case line.Streams.SSRC != 0:
		a.Streams[track] = line.Streams
		return nil
	default:
		a.Names[track] = ingress.Name{MID: line.MID}
	}
	for _, extension := range answer.Lines[i].Extensions {
		switch id := uint8(extension.ID); extension.URI {
		case description.LayerExtension:
			a.Extensions.Layer = id
		case description.MIDExtension:
			a.Extensions.MID = id
		case description.RetransmissionExtension:
			a.Extensions.Retransmission = id
		}
	}
	return nil
}

// restartRemote restarts ICE with the client's new credentials.
func (c *Connection) restartRemote(m RestartRemote) {
	if !c.answered {
		c.owner.RequestFailed(m.ID, signal.CodeUnexpectedAnswer, "the client has made no offer")
		return
	}
	c.peer.RemoteRestarted(m.Ufrag, m.Password)
	answer, err := c.peer.CompleteAnswer()
	if err != nil {
		c.owner.RequestFailed(m.ID, signal.CodeInvalidSDP, err.Error())
		return
	}
	c.owner.OfferAnswered(&Answered{ID: m.ID, SDP: answer.Marshal()})
}
