package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/pkg/signal"
)

// linkTimes are those of the websocket.
type linkTimes struct {
	// dial and write bound how long a connection and a message may take.
	dial, write time.Duration
	// ping is how often the server is asked whether it is there, silence how long it may say nothing at all: three times as long, and some.
	ping, silence time.Duration
	// attempt is how long the first attempt to resume may take. Each further one may take twice as long, up to dial.
	attempt time.Duration
}

// usualLink suits servers that notice a client's silence after 15 s and then keep it for as long. An attempt to resume gets time for the three packets of TCP's that leave in its
// first 3 s: the next one would leave after 7 s, however soon the network comes back.
var usualLink = linkTimes{dial: 10 * time.Second, write: 10 * time.Second, ping: 3 * time.Second, silence: 10 * time.Second, attempt: 3 * time.Second}

// link is one websocket to the server. Messages come over a channel that is closed when the websocket ends; err says why.
type link struct {
	conn     *websocket.Conn
	times    linkTimes
	messages chan signal.Message
	stop     chan struct{}
	stopOnce sync.Once
	// err is set before messages is closed.
	err error
	// panicked is Config.panicked.
	panicked func(value any, stack []byte) error

	writing sync.Mutex
}

// dial opens a websocket and starts to read it, and to ask whether the server is there.
func dial(ctx context.Context, config Config) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, config.link.dial)
	defer cancel()
	header := http.Header{}
	if config.Token != "" {
		header.Set("Authorization", "Bearer "+config.Token)
	}
	dialer := *websocket.DefaultDialer
	dialer.TLSClientConfig = config.TLS
	conn, response, err := dialer.DialContext(ctx, config.signalURL(), header)
	if err != nil {
		if response != nil && response.StatusCode == http.StatusUnauthorized {
			return nil, &signal.Error{Code: signal.CodeUnauthorized, Message: "the server does not accept the token"}
		}
		if response != nil {
			return nil, fmt.Errorf("connect to %s: %w: %s", config.URL, err, response.Status)
		}
		return nil, fmt.Errorf("connect to %s: %w", config.URL, err)
	}
	conn.SetReadLimit(signal.MaxMessageBytes)
	l := &link{
		conn: conn, times: config.link, messages: make(chan signal.Message, 64), stop: make(chan struct{}),
		panicked: config.panicked,
	}
	conn.SetPingHandler(func(data string) error {
		l.alive()
		return conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(l.times.write))
	})
	conn.SetPongHandler(func(string) error {
		l.alive()
		return nil
	})
	go l.read()
	go l.ping()
	return l, nil
}

// greet opens a websocket, sends a join, and returns the reply.
func greet(ctx context.Context, config Config, join *signal.Join) (*link, *signal.Joined, error) {
	l, err := dial(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	fail := func(err error) (*link, *signal.Joined, error) {
		l.close()
		return nil, nil, err
	}
	if err := l.send(join); err != nil {
		return fail(err)
	}
	for {
		m, open, err := l.receive(ctx)
		switch {
		case err != nil:
			return fail(fmt.Errorf("join: %w", err))
		case !open:
			return fail(fmt.Errorf("join: %w", l.err))
		}
		switch m := m.(type) {
		case *signal.Joined:
			return l, m, nil
		case *signal.Error:
			return fail(fmt.Errorf("join: %w", m))
		}
	}
}

// alive notes that something came: the websocket lasts until nothing has come for too long.
func (l *link) alive() { _ = l.conn.SetReadDeadline(time.Now().Add(l.times.silence)) }

// ping is the goroutine that asks whether the server is there. What cannot be asked shows as silence.
func (l *link) ping() {
	defer l.confine(new(error))
	ticker := time.NewTicker(l.times.ping)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = l.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(l.times.write))
		case <-l.stop:
			return
		}
	}
}

// arriving is a message that is being read. A long one takes its time on a slow network, where nothing else comes meanwhile.
type arriving struct {
	link   *link
	reader io.Reader
}

// Read implements io.Reader.
func (a arriving) Read(b []byte) (int, error) {
	a.link.alive()
	return a.reader.Read(b)
}

// next reads one message.
func (l *link) next() ([]byte, error) {
	l.alive()
	_, reader, err := l.conn.NextReader()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(arriving{l, reader})
}

// read decodes messages until the websocket ends. Types that this version does not know are passed over.
func (l *link) read() {
	defer close(l.messages)
	defer func() { _ = l.conn.Close() }()
	defer l.confine(&l.err)
	for {
		data, err := l.next()
		if err != nil {
			l.err = err
			return
		}
		m, err := signal.DecodeFromServer(data)
		if errors.Is(err, signal.ErrUnknownType) {
			continue
		}
		if err != nil {
			l.err = err
			return
		}
		select {
		case l.messages <- m:
		case <-l.stop:
			return
		}
	}
}

// receive waits for a message until the context ends. One that is there counts though the context has ended since; it is not open where the websocket has ended.
func (l *link) receive(ctx context.Context) (m signal.Message, open bool, err error) {
	select {
	case m, open = <-l.messages:
		return m, open, nil
	case <-ctx.Done():
	}
	select {
	case m, open = <-l.messages:
		return m, open, nil
	default:
		return nil, false, ctx.Err()
	}
}

// send writes one message. A websocket that takes none has ended: whoever only reads it would go on without a word to the server.
func (l *link) send(m signal.Message) error {
	data, err := signal.Encode(m)
	if err != nil {
		return err
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	err = l.conn.SetWriteDeadline(time.Now().Add(l.times.write))
	if err == nil {
		err = l.conn.WriteMessage(websocket.TextMessage, data)
	}
	if err != nil {
		_ = l.conn.Close()
		return fmt.Errorf("%w: %w", errUnsent, err)
	}
	return nil
}

// write sends a message that needs no reply. An error shows as the websocket's end.
func (l *link) write(m signal.Message) { _ = l.send(m) }

// errUnsent is wrapped with why a websocket took no message.
var errUnsent = errors.New("the websocket has ended")

// close ends the websocket. The reading goroutine ends soon after.
func (l *link) close() {
	l.stopOnce.Do(func() {
		close(l.stop)
		frame := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
		_ = l.conn.WriteControl(websocket.CloseMessage, frame, time.Now().Add(time.Second))
		_ = l.conn.Close()
	})
}
