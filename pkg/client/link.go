package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/pkg/signal"
)

// Times of the websocket. The server pings every few seconds; silence of half a minute means that it is gone.
const (
	dialTimeout  = 10 * time.Second
	writeTimeout = 10 * time.Second
	readTimeout  = 30 * time.Second
)

// link is one websocket to the server. Messages come over a channel that is closed when the websocket ends; err says why.
type link struct {
	conn     *websocket.Conn
	messages chan signal.Message
	stop     chan struct{}
	stopOnce sync.Once
	// err is set before messages is closed.
	err error

	writing sync.Mutex
}

// dial opens a websocket and starts to read it.
func dial(ctx context.Context, config Config) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
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
	l := &link{conn: conn, messages: make(chan signal.Message, 64), stop: make(chan struct{})}
	conn.SetPingHandler(func(data string) error {
		_ = conn.SetReadDeadline(time.Now().Add(readTimeout))
		return conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeTimeout))
	})
	go l.read()
	return l, nil
}

// read decodes messages until the websocket ends. Types that this version does not know are passed over.
func (l *link) read() {
	defer close(l.messages)
	for {
		_ = l.conn.SetReadDeadline(time.Now().Add(readTimeout))
		_, data, err := l.conn.ReadMessage()
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
			_ = l.conn.Close()
			return
		}
		select {
		case l.messages <- m:
		case <-l.stop:
			return
		}
	}
}

// send writes one message.
func (l *link) send(m signal.Message) error {
	data, err := signal.Encode(m)
	if err != nil {
		return err
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return l.conn.WriteMessage(websocket.TextMessage, data)
}

// close ends the websocket. The reading goroutine ends soon after.
func (l *link) close() {
	l.stopOnce.Do(func() {
		close(l.stop)
		frame := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
		_ = l.conn.WriteControl(websocket.CloseMessage, frame, time.Now().Add(time.Second))
		_ = l.conn.Close()
	})
}
