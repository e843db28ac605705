package rendezvous

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// path is the path of the websocket.
	path = "/v1/direct"
	// maxMessage bounds a message in bytes: an offer has a few kB, a thousand records 400 kB.
	maxMessage = 1 << 20
	// backlog is the number of messages that may wait for the reader: clock messages and records of a second.
	backlog = 64
	// dialTimeout, writeTimeout and readTimeout bound network operations. Clock messages are sent every second, so that
	// 10 s of silence mean that the other side is gone.
	dialTimeout  = 10 * time.Second
	writeTimeout = 5 * time.Second
	readTimeout  = 10 * time.Second
)

// Conn is a websocket between a producer and a consumer.
type Conn struct {
	socket   *websocket.Conn
	remote   netip.Addr
	messages chan Message
	stop     chan struct{}
	once     sync.Once
	reading  sync.WaitGroup
	// err is set before messages is closed.
	err     error
	writing sync.Mutex
}

// Dial opens a websocket to a listener at HOST:PORT, ws://HOST:PORT or wss://HOST:PORT.
func Dial(ctx context.Context, address string) (*Conn, error) {
	if !strings.Contains(address, "://") {
		address = "ws://" + address
	}
	target, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	target.Path = path
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	socket, response, err := websocket.DefaultDialer.DialContext(ctx, target.String(), nil)
	if response != nil && response.StatusCode == http.StatusServiceUnavailable {
		return nil, fmt.Errorf("connect to %s: %w", address, ErrBusy)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	return newConn(socket)
}

// newConn starts the reading goroutine.
func newConn(socket *websocket.Conn) (*Conn, error) {
	remote, err := netip.ParseAddrPort(socket.RemoteAddr().String())
	if err != nil {
		_ = socket.Close()
		return nil, err
	}
	c := &Conn{socket: socket, remote: remote.Addr().Unmap(), messages: make(chan Message, backlog),
		stop: make(chan struct{})}
	socket.SetReadLimit(maxMessage)
	c.reading.Go(c.read)
	return c, nil
}

// read reads messages until the websocket ends.
func (c *Conn) read() {
	defer close(c.messages)
	for {
		_ = c.socket.SetReadDeadline(time.Now().Add(readTimeout))
		_, data, err := c.socket.ReadMessage()
		var m Message
		if err == nil {
			m, err = Parse(data)
		}
		if err == nil && m.Type == TypeBye {
			err = ErrEnded
		}
		if err != nil {
			c.err = err
			if websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway) {
				c.err = ErrEnded
			}
			_ = c.socket.Close()
			return
		}
		select {
		case c.messages <- m:
		case <-c.stop:
			c.err = net.ErrClosed
			return
		}
	}
}

// Messages returns the channel of received messages. It is closed when the websocket ends. Err then returns the reason:
// ErrEnded if the other side has ended.
func (c *Conn) Messages() <-chan Message { return c.messages }

// Err returns the reason for which Messages was closed.
func (c *Conn) Err() error { return c.err }

// Remote returns the address of the other side, as it is visible from here.
func (c *Conn) Remote() netip.Addr { return c.remote }

// Send sends a message.
func (c *Conn) Send(m Message) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.socket.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return c.socket.WriteMessage(websocket.TextMessage, data)
}

// Close sends a goodbye, closes the websocket and waits for the reading goroutine.
func (c *Conn) Close() {
	c.once.Do(func() {
		close(c.stop)
		_ = c.Send(Message{Type: TypeBye})
		frame := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
		_ = c.socket.WriteControl(websocket.CloseMessage, frame, time.Now().Add(time.Second))
		_ = c.socket.Close()
		c.reading.Wait()
	})
}

// Greet sends a hello and returns that of the other side, which must have the other role.
func (c *Conn) Greet(ctx context.Context, own Hello) (Hello, error) {
	own.Version = Version
	if err := c.Send(Message{Type: TypeHello, Hello: &own}); err != nil {
		return Hello{}, err
	}
	m, err := c.Next(ctx, TypeHello)
	if err != nil {
		return Hello{}, err
	}
	if m.Hello.Role == own.Role {
		return Hello{}, fmt.Errorf("%w, got two sides with the role %s", ErrRole, own.Role)
	}
	return *m.Hello, nil
}

// Next waits for a message of a type. Any other message is an error.
func (c *Conn) Next(ctx context.Context, want Type) (Message, error) {
	select {
	case m, open := <-c.messages:
		switch {
		case !open:
			return Message{}, c.err
		case m.Type != want:
			return Message{}, fmt.Errorf("%w: %s, expected %s", ErrMessage, m.Type, want)
		}
		return m, nil
	case <-ctx.Done():
		return Message{}, ctx.Err()
	}
}

// ErrBusy is returned if the listener already has a connection.
var ErrBusy = errors.New("the listener already has a connection")

// Listener waits for one websocket.
type Listener struct {
	server  *http.Server
	address net.Addr
	conns   chan *Conn
	taken   chan struct{}
	stop    chan struct{}

	// serving has the goroutines for which Close waits. No goroutine is added after closed is set.
	mu      sync.Mutex
	closed  bool
	serving sync.WaitGroup
}

// Listen listens on an address, such as 127.0.0.1:8090.
func Listen(address string) (*Listener, error) {
	socket, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	l := &Listener{address: socket.Addr(), conns: make(chan *Conn), taken: make(chan struct{}, 1),
		stop: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc(path, l.upgrade)
	l.server = &http.Server{Handler: mux, ReadHeaderTimeout: dialTimeout}
	// The only error of Serve is that the listener was closed.
	l.serving.Go(func() { _ = l.server.Serve(socket) })
	return l, nil
}

// Address returns the listening address.
func (l *Listener) Address() string { return l.address.String() }

// upgrade accepts the first websocket and refuses others as busy.
func (l *Listener) upgrade(w http.ResponseWriter, r *http.Request) {
	if !l.enter() {
		http.Error(w, "the listener is closed", http.StatusServiceUnavailable)
		return
	}
	defer l.serving.Done()
	select {
	case l.taken <- struct{}{}:
	default:
		http.Error(w, ErrBusy.Error(), http.StatusServiceUnavailable)
		return
	}
	upgrader := websocket.Upgrader{HandshakeTimeout: dialTimeout}
	socket, err := upgrader.Upgrade(w, r, nil)
	if err == nil {
		var c *Conn
		if c, err = newConn(socket); err == nil {
			select {
			case l.conns <- c:
				return
			case <-l.stop:
				c.Close()
			}
		}
	}
	<-l.taken
}

// enter registers a request for which Close waits. It returns false after Close.
func (l *Listener) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.serving.Add(1)
	}
	return !l.closed
}

// Accept waits for a connection.
func (l *Listener) Accept(ctx context.Context) (*Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close stops listening. An accepted connection stays open.
func (l *Listener) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	close(l.stop)
	_ = l.server.Close()
	l.serving.Wait()
}
