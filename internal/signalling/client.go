package signalling

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// client is one websocket. Its reading side belongs to the goroutine that serves it.
type client struct {
	server      *Server
	conn        *websocket.Conn
	credentials Credentials
	outbox      *outbox
	opened      time.Time
	log         *zap.Logger
	session     *sfu.Session

	messages *rate.Limiter
	bytes    *rate.Limiter
	buffer   bytes.Buffer
}

// keptBuffer is the size above which a buffer is not kept for the next message; only descriptions are longer.
const keptBuffer = 64 << 10

// silenceFactor: a client that answers none of three pings is gone.
const silenceFactor = 3

// serve reads messages until the websocket ends or a violation closes it.
func (c *client) serve() {
	config := c.server.config
	c.messages = rate.NewLimiter(rate.Limit(config.MessageRate), config.MessageBurst)
	c.bytes = rate.NewLimiter(rate.Limit(config.ByteRate), config.ByteBurst)
	c.extend(config.JoinTimeout)
	c.conn.SetPongHandler(func(string) error {
		if c.session != nil && !c.outbox.ended() {
			c.extend(silenceFactor * config.PingInterval)
		}
		return nil
	})
	defer func() {
		if c.session != nil {
			c.session.Detach()
		}
		c.outbox.Close("", "")
		c.linger()
	}()
	for {
		data, err := c.read()
		now := time.Now()
		switch {
		case errors.Is(err, errTooLarge):
			c.violate(signal.CodeTooLarge, fmt.Sprintf("a message may have %d bytes", config.MessageBytes))
			return
		case errors.Is(err, errRate):
			c.violate(signal.CodeRateLimited, fmt.Sprintf("%g messages and %g bytes per second are the limit", config.MessageRate, config.ByteRate))
			return
		case err != nil:
			return
		}
		if !c.take(data, now) || c.outbox.ended() {
			return
		}
	}
}

// linger ends the connection once everything is written, and the client has closed its side or taken too long to. What it still sends is read and thrown
// away: a connection that is closed with bytes unread is reset, and the client would lose the reason that it was just told.
func (c *client) linger() {
	<-c.outbox.written
	conn := c.conn.NetConn()
	_ = conn.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.Copy(io.Discard, conn)
	_ = conn.Close()
}

func (c *client) extend(d time.Duration) { _ = c.conn.SetReadDeadline(time.Now().Add(d)) }

// read reads one message within the limits.
func (c *client) read() ([]byte, error) {
	kind, reader, err := c.conn.NextReader()
	if err != nil {
		return nil, err
	}
	limit := int64(c.server.config.MessageBytes)
	if c.buffer.Cap() > keptBuffer {
		c.buffer = bytes.Buffer{}
	}
	c.buffer.Reset()
	n, err := io.Copy(&c.buffer, io.LimitReader(reader, limit+1))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	switch {
	case n > limit:
		return nil, errTooLarge
	case !c.messages.AllowN(now, 1) || !c.bytes.AllowN(now, int(n)):
		return nil, errRate
	case kind != websocket.TextMessage:
		return nil, nil
	}
	if c.session != nil {
		c.extend(silenceFactor * c.server.config.PingInterval)
	}
	return c.buffer.Bytes(), nil
}

// take handles one message and reports whether the client may go on.
func (c *client) take(data []byte, now time.Time) bool {
	message, err := signal.DecodeFromClient(data)
	if message != nil {
		c.server.metrics.SignallingMessage("in", message.Head().Type)
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
		c.refuse(message.Head().ID, &signal.Error{Code: signal.CodeNotJoined, Message: "the first message must be a join"})
		return true
	}
	return c.join(join)
}

// join brings the client into its room.
func (c *client) join(join *signal.Join) bool {
	request := sfu.JoinRequest{
		Join:     join,
		Room:     firstOf(c.credentials.Room, join.Room),
		Identity: firstOf(c.credentials.Identity, join.Identity),
		Grants:   c.credentials.Grants,
		Outbox:   c.outbox,
		At:       c.opened,
	}
	if refused := c.checkNames(join, request); refused != nil {
		c.refuse(join.ID, refused)
		return !refused.Code.Closes()
	}
	session, refused := c.server.node.Join(request)
	if refused != nil {
		c.refuse(join.ID, refused)
		return !refused.Code.Closes()
	}
	c.session = session
	c.extend(silenceFactor * c.server.config.PingInterval)
	return true
}

// refuseError tells the client what is wrong with a message, and reports whether it may go on.
func (c *client) refuseError(message signal.Message, err error) bool {
	id := ""
	if message != nil {
		id = message.Head().ID
	}
	e := signal.ErrorFor(id, err)
	if e.Code.Closes() {
		c.log.Warn("client violates the protocol", zap.String("code", string(e.Code)), zap.String("what", e.Message))
	}
	c.refuse(id, e)
	return !e.Code.Closes()
}

// refuse tells the client that a request failed, and closes the connection where the code says so.
func (c *client) refuse(id string, e *signal.Error) {
	c.server.metrics.SignallingError(e.Code)
	e.ID = id
	c.outbox.Send(e)
	if e.Code.Closes() {
		c.outbox.Close(e.Code, e.Message)
	}
}

// violate tells the client why its connection is closed.
func (c *client) violate(code signal.Code, message string) {
	c.log.Warn("client violates the protocol", zap.String("code", string(code)), zap.String("what", message))
	c.refuse("", &signal.Error{Code: code, Message: message})
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// checkNames tells what is wrong with the names of a join, given those of its token.
func (c *client) checkNames(join *signal.Join, request sfu.JoinRequest) *signal.Error {
	mismatch := func(what, token, asked string) *signal.Error {
		return &signal.Error{Code: signal.CodeForbidden, Message: fmt.Sprintf("the token is for %s %q, not %q", what, token, asked)}
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
