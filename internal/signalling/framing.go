package signalling

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/time/rate"
)

const (
	// frameBytes is the number of bytes of a message beside its payload, or of a control frame: a header of 14 bytes,
	// and the payload of a control frame (RFC 6455 sections 5.2 and 5.5).
	frameBytes = 14 + 125
	// framingShare is the part of the bytes of messages that the headers of further frames of a message may have: the
	// clients that fragment messages put some kilobytes into each frame.
	framingShare = 1.0 / 64
)

// framingLimit returns the limit of the bytes of a client beside the payloads of messages. An empty frame has 6 bytes:
// with the default limits, a client can send 20,000 of them per second.
func framingLimit(c *Config) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(c.MessageRate*frameBytes+c.ByteRate*framingShare),
		int(float64(c.MessageBurst)*frameBytes+float64(c.ByteBurst)*framingShare))
}

// countFraming returns errRate if the client has sent more bytes beside the payloads of messages than it may. Bytes in
// the buffer of the websocket count until they turn out to be payload.
func (i *Inbox) countFraming() error {
	more := i.received - i.payloads - i.framed
	if more <= 0 {
		return nil
	}
	i.framed += more
	if !i.framing.AllowN(time.Now(), int(more)) {
		return errRate
	}
	return nil
}

// Upgrade upgrades a connection to a websocket. An Inbox of the websocket limits the frames of the client.
func Upgrade(u *websocket.Upgrader, w http.ResponseWriter, r *http.Request) (*websocket.Conn, error) {
	return u.Upgrade(metering{w}, r, nil)
}

// metering is a ResponseWriter whose connection is metered. metering implements http.Hijacker.
type metering struct{ http.ResponseWriter }

// Hijack implements http.Hijacker.
func (m metering) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := http.NewResponseController(m.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	return &metered{Conn: conn}, buffers, nil
}

// metered is the connection of a websocket that tells the Inbox of the websocket the bytes that were read.
type metered struct {
	net.Conn
	// inbox is nil before there is an Inbox. The reading goroutine owns it.
	inbox *Inbox
}

// Read implements net.Conn. Read returns errRate when the bytes before this call exceed the limit.
func (m *metered) Read(b []byte) (int, error) {
	if m.inbox == nil {
		return m.Conn.Read(b)
	}
	if err := m.inbox.countFraming(); err != nil {
		return 0, err
	}
	n, err := m.Conn.Read(b)
	m.inbox.received += int64(n)
	return n, err
}

// CloseWrite closes the sending half of the connection.
func (m *metered) CloseWrite() error {
	half, ok := m.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// payload reads the payload of a message and counts its bytes.
type payload struct {
	io.Reader
	bytes *int64
}

// Read implements io.Reader.
func (p payload) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	*p.bytes += int64(n)
	return n, err
}
