package signalling

import (
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// client is one websocket. The reading side belongs to the goroutine that serves the websocket.
type client struct {
	server      *Server
	conn        *websocket.Conn
	credentials Credentials
	outbox      *outbox
	opened      time.Time
	session     Session
	inbox       *Inbox
	// remote is the client's address and port. source is the prefix that counts as one address; source is not valid for
	// addresses of this host.
	remote string
	source netip.Prefix
	// refused is the number of refused joins.
	refused int
	// proxied reports that another node proxies the websocket to this node, proxying that this node proxies the
	// websocket to another. bearer has the client's token if the server is a node of a cluster.
	proxied  bool
	proxying atomic.Bool
	bearer   bearer
}

// serve reads messages until the websocket ends or a violation closes the websocket.
func (c *client) serve() {
	c.inbox = NewInbox(c.conn, &c.server.config)
	c.inbox.Extend(c.server.config.JoinTimeout)
	// Before the join, a join is the only message that a client may send.
	c.inbox.limit = min(c.server.config.MessageBytes, signal.MaxBytes(signal.TypeJoin))
	c.inbox.TakeControl(func() {
		if (c.session != nil || c.proxying.Load()) && !c.outbox.ended() {
			c.inbox.Alive()
		}
	})
	defer func() {
		c.server.exit(c)
		if c.session != nil {
			c.session.Detach()
		}
		c.outbox.Close("", "")
		<-c.outbox.Written()
		c.inbox.Linger()
	}()
	for {
		data, text, err := c.inbox.Read()
		now := time.Now()
		if violated := c.inbox.Violation(err); violated != nil {
			c.violate(violated.Code, violated.Message)
			return
		}
		switch {
		case err != nil:
			return
		case !text:
			data = nil
		case c.session != nil:
			c.inbox.Alive()
		}
		if !c.take(data, now) || c.outbox.ended() {
			return
		}
	}
}

// take handles one message and reports whether the client may continue.
func (c *client) take(data []byte, now time.Time) bool {
	if c.session == nil {
		if err := c.server.joins.try(c.credentials.Fingerprint, c.source, len(data), now); err != nil {
			c.violate(signal.CodeRateLimited, err.Error())
			return false
		}
	}
	message, err := signal.DecodeFromClient(data)
	if message != nil {
		c.server.metrics.SignallingMessage("in", message.Head().Type)
	}
	if !c.isOwed(message) {
		if violated := c.inbox.Violation(c.inbox.Count(now)); violated != nil {
			c.violate(violated.Code, violated.Message)
			return false
		}
	}
	if request, ok := message.(signal.Request); ok && err == nil {
		err = request.Validate()
	}
	if err != nil {
		return c.refuseError(message, err)
	}
	if c.session != nil {
		c.session.Handle(message, now)
		return true
	}
	join, ok := message.(*signal.Join)
	if !ok {
		c.refuse(message.Head().ID, &signal.Error{
			Code: signal.CodeNotJoined, Message: "the first message must be a join",
		})
		return true
	}
	return c.join(join, data)
}

// isOwed reports whether message is an acknowledgement that the client owes the server. The number of acknowledgements
// depends on the other participants, so an owed acknowledgement does not count against the client's rate.
func (c *client) isOwed(message signal.Message) bool {
	m, ok := message.(*signal.Acknowledge)
	return ok && c.outbox.acknowledged(len(m.Slots))
}

// join adds the client to its room, on this node or on another, and reports whether the client may continue. data is
// the text of the join.
func (c *client) join(join *signal.Join, data []byte) bool {
	request := sfu.JoinRequest{
		Join:     join,
		Room:     firstOf(c.credentials.Room, join.Room),
		Identity: firstOf(c.credentials.Identity, join.Identity),
		Grants:   c.credentials.Grants,
		Outbox:   c.outbox,
		At:       c.opened,

		Bearer: BearerOf(c.credentials.Fingerprint, c.source), Token: c.credentials.Token,
		OwnsIdentity: c.credentials.OwnsIdentity(),
	}
	if refused := c.checkNames(join, request); refused != nil {
		return c.refuseJoin(join.ID, refused)
	}
	if c.server.cluster != nil {
		if handled, open := c.route(&request, data); handled {
			return open
		}
		c.outbox.welcome.enter = func(joined *signal.Joined) {
			c.server.enter(c, Client{Room: request.Room, Identity: request.Identity, Session: joined.Session,
				Ticket: joined.Resume.Secret, Moves: join.Moves, Outbox: c.outbox})
		}
	}
	session, refused := c.server.locator.Locate(&request).Join(request)
	if refused != nil {
		return c.refuseJoin(join.ID, refused)
	}
	c.session = session
	c.inbox.limit = c.server.config.MessageBytes
	c.inbox.Alive()
	return true
}

// refuseError sends the client the error of a message and reports whether the client may continue.
func (c *client) refuseError(message signal.Message, err error) bool {
	id := ""
	if message != nil {
		id = message.Head().ID
	}
	e := signal.ErrorFor(id, err)
	if e.Code.Closes() {
		c.logViolation(e.Code, e.Message)
	} else if c.session == nil && message.Head().Type == signal.TypeJoin {
		return c.refuseJoin(id, e)
	}
	c.refuse(id, e)
	return !e.Code.Closes()
}

// refuseJoin sends the client the reason why its join failed and reports whether the client may try again.
func (c *client) refuseJoin(id string, e *signal.Error) bool {
	c.refused++
	c.server.log.Refused(time.Now(), c.remote, "join refused", zap.String("code", string(e.Code)),
		zap.String("reason", e.Message))
	if !waited(c.outbox.Written(), c.server.joins.addresses.answerWait(c.source, time.Now(), maxJoinWait)) {
		c.server.metrics.SignallingError(e.Code)
		return false
	}
	c.refuse(id, e)
	if e.Code.Closes() {
		return false
	}
	if c.refused < maxRefusedJoins {
		return true
	}
	c.outbox.Close(signal.CodeRateLimited,
		fmt.Sprintf("%d joins were refused on this connection, the maximum", c.refused))
	return false
}

func (c *client) logViolation(code signal.Code, what string) {
	c.server.log.Refused(time.Now(), c.remote, "client violates the protocol", zap.String("code", string(code)),
		zap.String("what", what))
}

// refuse sends the client the error of a request and closes the connection if the code requires that.
func (c *client) refuse(id string, e *signal.Error) {
	c.server.metrics.SignallingError(e.Code)
	e.ID = id
	c.outbox.Send(e)
	if e.Code.Closes() {
		c.outbox.Close(e.Code, e.Message)
	}
}

// violate sends the client the reason and closes its connection.
func (c *client) violate(code signal.Code, message string) {
	c.logViolation(code, message)
	c.refuse("", &signal.Error{Code: code, Message: message})
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// checkNames returns an error if the names of a join are malformed or contradict the names of the token, nil otherwise.
func (c *client) checkNames(join *signal.Join, request sfu.JoinRequest) *signal.Error {
	mismatch := func(what, token, asked string) *signal.Error {
		return &signal.Error{
			Code: signal.CodeForbidden, Message: fmt.Sprintf("the token is for %s %q, not %q", what, token, asked),
		}
	}
	switch {
	case join.Room != "" && join.Room != request.Room:
		return mismatch("room", request.Room, join.Room)
	case join.Identity != "" && join.Identity != request.Identity:
		return mismatch("identity", request.Identity, join.Identity)
	}
	for what, name := range map[string]string{"room": request.Room, "identity": request.Identity} {
		if err := volumetric.ValidateName(what, name); err != nil {
			return &signal.Error{Code: signal.CodeInvalid, Message: err.Error()}
		}
	}
	return nil
}
