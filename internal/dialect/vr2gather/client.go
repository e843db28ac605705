package vr2gather

import (
	"errors"
	"fmt"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// errTrack reports that a peer sends a stream under a name that does not belong to its line.
var errTrack = errors.New("stream does not belong to its line")

// client is one websocket of the VR2Gather dialect. The reading side belongs to the goroutine that serves the
// websocket.
type client struct {
	server  *Server
	conn    *websocket.Conn
	outbox  *outbox
	opened  time.Time
	query   vr2gather.Query
	place   place
	remote  string
	log     *zap.Logger
	session signalling.Session

	// signs reports messages and pongs of the peer. gone is closed when the room knows that the peer has left.
	signs *signs
	gone  chan struct{}

	inbox *signalling.Inbox
	// warnedType is set when an unexpected message type has been logged.
	warnedType bool
}

// serve joins the room on behalf of the peer, which sends no join, and reads messages until the websocket ends.
func (c *client) serve(join sfu.JoinRequest) {
	c.inbox = signalling.NewInbox(c.conn, &c.server.limits)
	c.outbox = newOutbox(c)
	defer c.end()
	join.Outbox = c.outbox
	session, refused := c.join(join)
	if refused != nil {
		c.refuseJoin(refused)
		return
	}
	c.session = session
	c.alive()
	c.inbox.TakeControl(func() {
		if !c.outbox.ended() {
			c.alive()
		}
	})
	for {
		text, _, err := c.inbox.Read()
		now := time.Now()
		if err == nil {
			err = c.inbox.Count(now)
		}
		if violated := c.inbox.Violation(err); violated != nil {
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

// alive records a message or a pong of the peer.
func (c *client) alive() {
	c.inbox.Alive()
	c.signs.give()
}

// end notifies the room and ends the connection after the queued messages are written.
func (c *client) end() {
	if c.session != nil {
		c.session.Detach()
		c.server.presence.clear(c.place, c)
	}
	close(c.gone)
	c.outbox.Close("", "")
	<-c.outbox.Written()
	c.inbox.Linger()
}

// take handles a message. An error ends the connection.
func (c *client) take(text []byte, now time.Time) error {
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
		c.session.Choose(&chooser{named: choices, unread: unread, ignored: &c.server.ignored}, now)
	default:
		if !c.warnedType {
			c.warnedType = true
			c.log.Warn("unexpected message type from a VR2Gather peer", zap.Uint32("type", uint32(m.Type)),
				zap.String("repeated", "not logged again"))
		}
	}
	return nil
}

// answer handles an answer to the last offer. answer returns an error if the answer does not match the offer.
func (c *client) answer(value string, now time.Time) error {
	answer, err := vr2gather.ParseDescription(value)
	if err != nil {
		return err
	}
	offer := c.outbox.offered()
	if offer == nil {
		return fmt.Errorf("%w: an answer without an offer", vr2gather.ErrDescription)
	}
	text, streams, err := fromPeer(answer.SDP)
	if err != nil {
		return err
	}
	for mid, stream := range streams {
		// The room rejects an answer with a line that the offer does not have.
		if want, ok := offer.published[mid]; ok && stream != want {
			return fmt.Errorf("%w: mid %s is %.80q, expected %q", errTrack, mid, stream, want)
		}
	}
	return c.hand(&signal.Answer{Header: signal.Header{ID: answerID}, Offer: offer.number, SDP: text}, now)
}

// answerID marks errors about answers.
const answerID = "answer"

// hand passes an equivalent message of signalling v1 to the room.
func (c *client) hand(m signal.Request, now time.Time) error {
	if err := m.Validate(); err != nil {
		return err
	}
	c.session.Handle(m, now)
	return nil
}

// refuseJoin ends the connection of a peer whose join was refused, after the delay of the peer's address.
func (c *client) refuseJoin(e *signal.Error) {
	c.server.delays.Wait(c.outbox.Written(), c.remote)
	c.refuse(e.Code, e.Message)
}

// refuse logs the reason and ends the connection. Peers ignore the reason; the reason helps people who look at the
// traffic.
func (c *client) refuse(code signal.Code, reason string) {
	c.server.metrics.SignallingError(code)
	c.outbox.Close(code, reason)
}
