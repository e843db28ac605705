package signalling

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/time/rate"

	"github.com/volsfu/volsfu/pkg/signal"
)

// errTooLarge and errRate report violations of limits.
var (
	errTooLarge = errors.New("message too large")
	errRate     = errors.New("too many messages")
)

// keptBuffer is the size in bytes above which a buffer is not kept for the next message. Frequent messages are shorter:
// viewpoints, poses and acknowledgements. An answer to an offer has some 20 kB.
const keptBuffer = 4 << 10

// silenceFactor is the number of ping intervals after which a silent client counts as gone.
const silenceFactor = 3

// Inbox is the reading side of a websocket, with limits. An Inbox belongs to the goroutine that serves the websocket.
type Inbox struct {
	conn     *websocket.Conn
	config   *Config
	messages *rate.Limiter
	bytes    *rate.Limiter
	buffer   bytes.Buffer
	// framing limits the bytes beside the payloads of messages. received is the number of bytes that the client has
	// sent, payloads that of payloads of messages, and framed the largest difference of both so far. All are 0 for a
	// websocket that Upgrade has not made.
	framing                    *rate.Limiter
	received, payloads, framed int64
	// limit is the present maximum length of a message, in bytes.
	limit int
}

// NewInbox returns the inbox of a websocket that Upgrade has made, with the limits of config.
func NewInbox(conn *websocket.Conn, config *Config) *Inbox {
	i := &Inbox{
		conn: conn, config: config, limit: config.MessageBytes,
		messages: rate.NewLimiter(rate.Limit(config.MessageRate), config.MessageBurst),
		bytes:    rate.NewLimiter(rate.Limit(config.ByteRate), config.ByteBurst),
		framing:  framingLimit(config),
	}
	if m, ok := conn.NetConn().(*metered); ok {
		m.inbox = i
	}
	return i
}

// Read reads one message. The next call overwrites data. text reports whether the message is a text message.
func (i *Inbox) Read() (data []byte, text bool, err error) {
	// A client may be silent for a long time, so a large buffer is released before the wait.
	if i.buffer.Cap() > keptBuffer {
		i.buffer = bytes.Buffer{}
	}
	i.buffer.Reset()
	kind, reader, err := i.conn.NextReader()
	if err != nil {
		return nil, false, err
	}
	limit := int64(i.limit)
	n, err := io.Copy(&i.buffer, io.LimitReader(payload{reader, &i.payloads}, limit+1))
	now := time.Now()
	switch {
	case err != nil:
		return nil, false, err
	case n > limit:
		return nil, false, errTooLarge
	case !i.bytes.AllowN(now, int(n)):
		return nil, false, errRate
	}
	return i.buffer.Bytes(), kind == websocket.TextMessage, nil
}

// Count counts a message against the message rate and returns an error if the rate is exceeded.
func (i *Inbox) Count(now time.Time) error {
	if !i.messages.AllowN(now, 1) {
		return errRate
	}
	return nil
}

// TakeControl counts the client's pings and pongs as messages, because no other limit bounds them: a ping is answered,
// and a pong moves a deadline. ponged is called for each pong.
func (i *Inbox) TakeControl(ponged func()) {
	answer := i.conn.PingHandler()
	i.conn.SetPingHandler(func(data string) error {
		if err := i.Count(time.Now()); err != nil {
			return err
		}
		return answer(data)
	})
	i.conn.SetPongHandler(func(string) error {
		if err := i.Count(time.Now()); err != nil {
			return err
		}
		ponged()
		return nil
	})
}

// Violation returns the protocol error for an error of Read or Count, nil if err is not about a limit.
func (i *Inbox) Violation(err error) *signal.Error {
	switch {
	case errors.Is(err, errTooLarge):
		return &signal.Error{Code: signal.CodeTooLarge, Message: fmt.Sprintf("the message exceeds %d bytes", i.limit)}
	case errors.Is(err, errRate):
		return &signal.Error{
			Code: signal.CodeRateLimited,
			Message: fmt.Sprintf("the limit is %g messages and %g bytes per second", i.config.MessageRate,
				i.config.ByteRate),
		}
	default:
		return nil
	}
}

// Extend ends the websocket if no message arrives within d.
func (i *Inbox) Extend(d time.Duration) { _ = i.conn.SetReadDeadline(time.Now().Add(d)) }

// Alive ends the websocket if no message arrives within three ping intervals.
func (i *Inbox) Alive() { i.Extend(silenceFactor * i.config.PingInterval) }

// Linger ends the connection when the client has closed its side or lingerTime has passed. Until then it discards what
// the client sends: a connection that is closed with unread bytes is reset, and the client would lose the reason for
// the end.
func (i *Inbox) Linger() {
	conn := i.conn.NetConn()
	if m, ok := conn.(*metered); ok {
		conn = m.Conn
	}
	_ = conn.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.Copy(io.Discard, conn)
	_ = conn.Close()
}
