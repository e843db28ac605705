package signalling

import (
	"errors"
	"fmt"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// errTrack says that a peer sends something under a name that is not its own.
var errTrack = errors.New("stream is not what its line is for")

// vr2GatherClient is one websocket of VR2Gather's dialect. Its reading side belongs to the goroutine that serves it.
type vr2GatherClient struct {
	server  *VR2GatherServer
	conn    *websocket.Conn
	outbox  *vr2GatherOutbox
	opened  time.Time
	query   vr2gather.Query
	place   vr2GatherPlace
	remote  string
	log     *zap.Logger
	session Session

	// signs are those that the peer gives; gone is closed once the room knows that it has left.
	signs *signs
	gone  chan struct{}

	inbox *inbox
	// strange is set once a message of a type that peers do not send is in the log.
	strange bool
}

// serve joins for the peer, which does not ask, and reads messages until the websocket ends or is refused.
func (c *vr2GatherClient) serve(join sfu.JoinRequest) {
	c.inbox = newInbox(c.conn, &c.server.limits)
	c.outbox = newVR2GatherOutbox(c)
	defer c.end()
	join.Outbox = c.outbox
	session, refused := c.join(join)
	if refused != nil {
		c.refuseJoin(refused)
		return
	}
	c.session = session
	c.alive()
	c.inbox.takeControl(func() {
		if !c.outbox.ended() {
			c.alive()
		}
	})
	for {
		text, _, err := c.inbox.read()
		now := time.Now()
		if err == nil {
			err = c.inbox.count(now)
		}
		if violated := c.inbox.violation(err); violated != nil {
			c.refuse(violated.Code, violated.Message)
			return
		}
		if err != nil {
			return
		}
		c.alive()
		if err := c.take(text, now); err != nil {
			c.refuse(signal.CodeMalformed, err.Error())
			return
		}
		if c.outbox.ended() {
			return
		}
	}
}

// alive notes that the peer has said something.
func (c *vr2GatherClient) alive() {
	c.inbox.alive()
	c.signs.give()
}

// end lets the room know, and ends the connection once what is queued is written.
func (c *vr2GatherClient) end() {
	if c.session != nil {
		c.session.Detach()
		c.server.presence.clear(c.place, c)
	}
	close(c.gone)
	c.outbox.Close("", "")
	<-c.outbox.written
	c.inbox.linger()
}

// take does what a message says. An error is one that ends the connection.
func (c *vr2GatherClient) take(text []byte, now time.Time) error {
	m, err := vr2gather.ParseMessage(text)
	if err != nil {
		return err
	}
	switch m.Type {
	case vr2gather.MessageAnswer:
		c.server.metrics.SignallingMessage("in", signal.TypeAnswer)
		return c.answer(m.Value, now)
	case vr2gather.MessageCandidate:
		c.server.metrics.SignallingMessage("in", signal.TypeCandidate)
		return c.hand(&signal.Candidate{Candidate: m.Value}, now)
	case vr2gather.MessageQuality:
		c.server.metrics.SignallingMessage("in", signal.TypeSetQuality)
		choices, unread := vr2gather.ParseQualityChoices(m.Value)
		c.session.HandleQualities(choices, unread, now)
	default:
		if !c.strange {
			c.strange = true
			c.log.Warn("message of a type that peers do not send", zap.Uint32("type", uint32(m.Type)), zap.String("repeated", "not logged again"))
		}
	}
	return nil
}

// answer takes an answer to the last offer, if it fits it.
func (c *vr2GatherClient) answer(value string, now time.Time) error {
	answer, err := vr2gather.ParseDescription(value)
	if err != nil {
		return err
	}
	offer := c.outbox.offered()
	if offer == nil {
		return fmt.Errorf("%w: an answer without an offer", vr2gather.ErrDescription)
	}
	text, streams, err := description.FromVR2Gather(answer.SDP)
	if err != nil {
		return err
	}
	for mid, stream := range streams {
		// An offer that names no such line is the room's to complain of.
		if track, ok := offer.Tracks[mid]; ok && offer.Publishes[mid] && stream != track.StreamID(offer.Tiles)+" "+track.ID() {
			return fmt.Errorf("%w: mid %s is %.80q, expected %q", errTrack, mid, stream, track.StreamID(offer.Tiles)+" "+track.ID())
		}
	}
	return c.hand(&signal.Answer{Header: signal.Header{ID: answerID}, Offer: offer.Number, SDP: text}, now)
}

// answerID tells errors about answers from others.
const answerID = "answer"

// hand gives the room a message of signalling v1 that says the same.
func (c *vr2GatherClient) hand(m signal.Request, now time.Time) error {
	if err := m.Validate(); err != nil {
		return err
	}
	c.session.Handle(m, now)
	return nil
}

// refuseJoin ends the connection of a peer that may not join, after the delay of the peer's address.
func (c *vr2GatherClient) refuseJoin(e *signal.Error) {
	waited(c.outbox.written, c.server.answerWait(c.remote))
	c.refuse(e.Code, e.Message)
}

// refuse says in the log why the connection ends, and ends it. Peers read no reasons, people who look at what is sent do.
func (c *vr2GatherClient) refuse(code signal.Code, reason string) {
	c.server.metrics.SignallingError(code)
	c.outbox.Close(code, reason)
}
