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

// errTooLarge and errRate are violations of limits.
var (
	errTooLarge = errors.New("message too large")
	errRate     = errors.New("too many messages")
)

// keptBuffer is the size above which a buffer is not kept for the next message; only descriptions are longer.
const keptBuffer = 64 << 10

// silenceFactor: a client that answers none of three pings is gone.
const silenceFactor = 3

// Inbox is the reading side of a websocket, within limits. It belongs to the goroutine that serves the websocket.
type Inbox struct {
	conn     *websocket.Conn
	config   *Config
	messages *rate.Limiter
	bytes    *rate.Limiter
	buffer   bytes.Buffer
	// limit is how long a message may be at present, in bytes.
	limit int
}

// NewInbox returns the inbox of a websocket, within the limits of a configuration.
func NewInbox(conn *websocket.Conn, config *Config) *Inbox {
	return &Inbox{
		conn: conn, config: config, limit: config.MessageBytes,
		messages: rate.NewLimiter(rate.Limit(config.MessageRate), config.MessageBurst),
		bytes:    rate.NewLimiter(rate.Limit(config.ByteRate), config.ByteBurst),
	}
}

// Read reads one message, which the next one overwrites. Text tells whether it is one of text.
func (i *Inbox) Read() (data []byte, text bool, err error) {
	kind, reader, err := i.conn.NextReader()
	if err != nil {
		return nil, false, err
	}
	if i.buffer.Cap() > keptBuffer {
		i.buffer = bytes.Buffer{}
	}
	i.buffer.Reset()
	limit := int64(i.limit)
	n, err := io.Copy(&i.buffer, io.LimitReader(reader, limit+1))
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

// Count counts a message that was read. The error says that it is one too many.
func (i *Inbox) Count(now time.Time) error {
	if !i.messages.AllowN(now, 1) {
		return errRate
	}
	return nil
}

// TakeControl counts the client's pings and pongs as messages: each is answered or moves a deadline, and nothing else
// limits them. Heard is called for pongs.
func (i *Inbox) TakeControl(heard func()) {
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
		heard()
		return nil
	})
}

// Violation says which limit an error of read or count is about, nil for none.
func (i *Inbox) Violation(err error) *signal.Error {
	switch {
	case errors.Is(err, errTooLarge):
		return &signal.Error{Code: signal.CodeTooLarge, Message: fmt.Sprintf("a message may have %d bytes", i.limit)}
	case errors.Is(err, errRate):
		return &signal.Error{
			Code: signal.CodeRateLimited,
			Message: fmt.Sprintf("%g messages and %g bytes per second are the limit", i.config.MessageRate,
				i.config.ByteRate),
		}
	default:
		return nil
	}
}

// Extend has the websocket end unless something comes within that time.
func (i *Inbox) Extend(d time.Duration) { _ = i.conn.SetReadDeadline(time.Now().Add(d)) }

// Alive has it end unless something comes before three pings are unanswered.
func (i *Inbox) Alive() { i.Extend(silenceFactor * i.config.PingInterval) }

// Linger ends the connection once the client has closed its side or taken too long to. What it still sends is read
// and thrown away: a connection that is closed with bytes unread is reset, and the client would lose the reason that
// it was just told.
func (i *Inbox) Linger() {
	conn := i.conn.NetConn()
	_ = conn.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.Copy(io.Discard, conn)
	_ = conn.Close()
}
