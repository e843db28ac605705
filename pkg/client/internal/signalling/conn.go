// Package signalling is a client's signalling connection: websockets to the server, requests that wait for replies, the
// state that was requested, and updates of which only the newest counts.
//
// A Conn has one goroutine that reads and one that sends pings. Requests, Requested and Updates outlive the websocket
// and have no goroutine. The methods of all types are safe for concurrent use.
package signalling

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/pkg/signal"
)

// Times are the time limits of a websocket.
type Times struct {
	// Dial limits the time to open a connection, Write the time to write a message.
	Dial, Write time.Duration
	// Ping is the time between two pings. The websocket ends if nothing has arrived for Silence, which is a little more
	// than three times Ping.
	Ping, Silence time.Duration
	// Attempt limits the first attempt to resume. The limit doubles with each further attempt, up to Dial.
	Attempt time.Duration
}

// DefaultTimes suits servers that notice a client's silence after 15 s and then keep the client for as long. An attempt
// to resume has time for the three packets of TCP that leave within its first 3 s. The next packet would leave after 7
// s, however soon the network is back.
var DefaultTimes = Times{
	Dial: 10 * time.Second, Write: 10 * time.Second,
	Ping: 3 * time.Second, Silence: 10 * time.Second,
	Attempt: 3 * time.Second,
}

// Config describes the websockets of a session.
type Config struct {
	// URL is the server's address, as ws://host:port or wss://host:port.
	URL string
	// Token is the access token, empty for none.
	Token string
	// TLS is used for wss. nil uses the system's certificates.
	TLS   *tls.Config
	Times Times
	// Panicked receives panics in goroutines of the websocket, and returns the error that the websocket ends with. If
	// Panicked is nil, panics are not recovered.
	Panicked func(value any, stack []byte) error
}

// address returns the URL of the websocket.
func (c Config) address() string {
	u, err := url.Parse(c.URL)
	if err != nil {
		return c.URL
	}
	u.Path = signal.Path
	return u.String()
}

// backlog is the number of messages that wait for the session.
const backlog = 64

// ErrUnsent is wrapped with the reason for which a message could not be written.
var ErrUnsent = errors.New("the websocket has ended")

// Conn is one websocket to the server.
type Conn struct {
	conn     *websocket.Conn
	times    Times
	messages chan signal.Message
	stop     chan struct{}
	stopOnce sync.Once
	// err is set before messages is closed.
	err error
	// panicked is Config.Panicked.
	panicked func(value any, stack []byte) error
	// lastReceived is the time when something has arrived last, in nanoseconds since 1970.
	lastReceived atomic.Int64

	writing sync.Mutex
}

// Dial opens a websocket, and starts to read from the websocket and to send pings.
func Dial(ctx context.Context, config Config) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, config.Times.Dial)
	defer cancel()
	header := http.Header{}
	if config.Token != "" {
		header.Set("Authorization", "Bearer "+config.Token)
	}
	dialer := *websocket.DefaultDialer
	dialer.TLSClientConfig = config.TLS
	conn, response, err := dialer.DialContext(ctx, config.address(), header)
	if err != nil {
		if response != nil && response.StatusCode == http.StatusUnauthorized {
			return nil, &signal.Error{Code: signal.CodeUnauthorized, Message: "the server does not accept the token"}
		}
		if response != nil {
			return nil, fmt.Errorf("connect to %s: %w: %s", config.URL, err, response.Status)
		}
		return nil, fmt.Errorf("connect to %s: %w", config.URL, err)
	}
	return start(conn, &config), nil
}

// start starts to read from a websocket and to send pings.
func start(conn *websocket.Conn, config *Config) *Conn {
	conn.SetReadLimit(signal.MaxMessageBytes)
	c := &Conn{
		conn: conn, times: config.Times, messages: make(chan signal.Message, backlog), stop: make(chan struct{}),
		panicked: config.Panicked,
	}
	conn.SetPingHandler(func(data string) error {
		c.alive()
		return conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(c.times.Write))
	})
	conn.SetPongHandler(func(string) error {
		c.alive()
		return nil
	})
	c.alive()
	go c.read()
	go c.ping()
	return c
}

// MovedError is the reply of a server that sends the client to another server.
type MovedError struct{ Moved *signal.Moved }

// Error implements error.
func (e *MovedError) Error() string { return "the server sends this client to " + e.Moved.URL }

// Join opens a websocket, sends a join, and returns the reply. The error may wrap a MovedError.
func Join(ctx context.Context, config Config, join *signal.Join) (*Conn, *signal.Joined, error) {
	c, err := Dial(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	fail := func(err error) (*Conn, *signal.Joined, error) {
		c.Close()
		return nil, nil, err
	}
	if err := c.Send(join); err != nil {
		return fail(err)
	}
	for {
		m, open, err := c.receive(ctx)
		switch {
		case err != nil:
			return fail(fmt.Errorf("join: %w", err))
		case !open:
			return fail(fmt.Errorf("join: %w", c.err))
		}
		switch m := m.(type) {
		case *signal.Joined:
			return c, m, nil
		case *signal.Moved:
			return fail(fmt.Errorf("join: %w", &MovedError{m}))
		case *signal.Error:
			return fail(fmt.Errorf("join: %w", m))
		}
	}
}

// Messages returns the channel of received messages. The channel is closed when the websocket ends.
func (c *Conn) Messages() <-chan signal.Message { return c.messages }

// Err returns why the websocket has ended. It is valid once the channel of messages is closed.
func (c *Conn) Err() error { return c.err }

// alive records that the server has sent something, and extends the read deadline.
func (c *Conn) alive() {
	c.lastReceived.Store(time.Now().UnixNano())
	c.extend()
}

// extend extends the read deadline.
func (c *Conn) extend() { _ = c.conn.SetReadDeadline(time.Now().Add(c.times.Silence)) }

// LastReceived returns the time when something has arrived last.
func (c *Conn) LastReceived() time.Time { return time.Unix(0, c.lastReceived.Load()) }

// ping is the goroutine that sends pings. If a ping cannot be sent, the read deadline expires.
func (c *Conn) ping() {
	defer c.confine(new(error))
	ticker := time.NewTicker(c.times.Ping)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = c.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(c.times.Write))
		case <-c.stop:
			return
		}
	}
}

// aliveReader extends the read deadline with each part of a message. On a slow network a long message arrives slowly,
// and nothing else arrives meanwhile.
type aliveReader struct {
	conn   *Conn
	reader io.Reader
}

// Read implements io.Reader.
func (r aliveReader) Read(b []byte) (int, error) {
	r.conn.alive()
	return r.reader.Read(b)
}

// next reads one message.
func (c *Conn) next() ([]byte, error) {
	c.extend()
	_, reader, err := c.conn.NextReader()
	if err != nil {
		return nil, err
	}
	c.alive()
	return io.ReadAll(aliveReader{c, reader})
}

// read is the goroutine that decodes messages until the websocket ends. Messages of unknown types are ignored.
func (c *Conn) read() {
	defer close(c.messages)
	defer func() { _ = c.conn.Close() }()
	defer c.confine(&c.err)
	for {
		data, err := c.next()
		if err != nil {
			c.err = err
			return
		}
		m, err := signal.DecodeFromServer(data)
		if errors.Is(err, signal.ErrUnknownType) {
			continue
		}
		if err != nil {
			c.err = err
			return
		}
		select {
		case c.messages <- m:
		case <-c.stop:
			return
		}
	}
}

// receive waits for a message until the context ends. A message that has arrived counts even if the context has ended
// since. open is false if the websocket has ended.
func (c *Conn) receive(ctx context.Context) (m signal.Message, open bool, err error) {
	select {
	case m, open = <-c.messages:
		return m, open, nil
	case <-ctx.Done():
	}
	select {
	case m, open = <-c.messages:
		return m, open, nil
	default:
		return nil, false, ctx.Err()
	}
}

// Send writes one message. If the write fails, the websocket is closed. Otherwise the client would continue to read and
// never send another message.
func (c *Conn) Send(m signal.Message) error {
	data, err := signal.Encode(m)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	err = c.conn.SetWriteDeadline(time.Now().Add(c.times.Write))
	if err == nil {
		err = c.conn.WriteMessage(websocket.TextMessage, data)
	}
	if err != nil {
		_ = c.conn.Close()
		return fmt.Errorf("%w: %w", ErrUnsent, err)
	}
	return nil
}

// Write sends a message that needs no reply. If the write fails, the websocket ends.
func (c *Conn) Write(m signal.Message) { _ = c.Send(m) }

// Close ends the websocket. The goroutines end soon after.
func (c *Conn) Close() {
	c.stopOnce.Do(func() {
		close(c.stop)
		frame := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
		_ = c.conn.WriteControl(websocket.CloseMessage, frame, time.Now().Add(time.Second))
		_ = c.conn.Close()
	})
}

// confine is deferred by a goroutine of the websocket. If the goroutine panics, the websocket ends with the error that
// Config.Panicked returns, and end is set to that error. Without Config.Panicked, the panic is not recovered.
func (c *Conn) confine(end *error) {
	if c.panicked == nil {
		return
	}
	if value := recover(); value != nil {
		*end = c.panicked(value, debug.Stack())
		_ = c.conn.Close()
	}
}
