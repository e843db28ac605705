package signalling

import (
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/pkg/signal"
)

// Queue is the source of a Writer's messages.
type Queue interface {
	// Take returns the waiting messages. last reports whether no messages follow; code is then the code with which the
	// websocket is closed.
	Take() (messages []signal.Message, last bool, code signal.Code)
	// Encode returns the text of a message.
	Encode(signal.Message) ([]byte, error)
	// NotWritten reports that a message could not be encoded or written. The websocket ends after that.
	NotWritten(error)
}

// Writer is the writing side of a websocket. The goroutine writes the messages of a queue until the queue has ended or
// a write fails. After a failure the Writer closes the websocket; after an orderly end the reader closes it.
type Writer struct {
	conn   *websocket.Conn
	config *Config
	// written is closed when the goroutine has ended.
	written chan struct{}
	notify  chan struct{}
	// writing is held for each write of a message.
	writing sync.Mutex
}

// NewWriter returns a writer. Start starts its goroutine.
func NewWriter(conn *websocket.Conn, config *Config) *Writer {
	return &Writer{conn: conn, config: config, written: make(chan struct{}), notify: make(chan struct{}, 1)}
}

// Start starts the writer's goroutine.
func (w *Writer) Start(q Queue) {
	go func() {
		// The reader notices that the websocket is closed and ends the session.
		defer w.config.Guard.Recover(placeOutbox, func() { _ = w.conn.NetConn().Close() })
		w.run(q)
	}()
}

// Written returns a channel that is closed when the goroutine has ended.
func (w *Writer) Written() <-chan struct{} { return w.written }

// Wake reports that the queue has messages or has ended.
func (w *Writer) Wake() {
	select {
	case w.notify <- struct{}{}:
	default:
	}
}

// slowReaderGrace bounds the last write to a slow client: the time for a reason to reach the socket's buffer.
const slowReaderGrace = 100 * time.Millisecond

// Abort ends the websocket of a slow client. The present write and the next write fail after slowReaderGrace.
func (w *Writer) Abort() {
	time.AfterFunc(slowReaderGrace, func() { _ = w.conn.NetConn().Close() })
}

func (w *Writer) run(q Queue) {
	defer close(w.written)
	ping := time.NewTicker(w.config.PingInterval)
	defer ping.Stop()
	for {
		select {
		case <-w.notify:
			messages, last, code := q.Take()
			for _, m := range messages {
				if err := w.write(q, m); err != nil {
					q.NotWritten(err)
					_ = w.conn.Close()
					return
				}
			}
			if last {
				w.close(code)
				return
			}
		case <-ping.C:
			if w.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(w.config.WriteTimeout)) != nil {
				_ = w.conn.Close()
				return
			}
		}
	}
}

func (w *Writer) write(q Queue, m signal.Message) error {
	text, err := q.Encode(m)
	if err != nil {
		return err
	}
	return w.Pass(text)
}

// Pass writes the text of a message that does not come from the queue, and returns when it is written.
func (w *Writer) Pass(text []byte) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	if err := w.conn.SetWriteDeadline(time.Now().Add(w.config.WriteTimeout)); err != nil {
		return err
	}
	return w.conn.WriteMessage(websocket.TextMessage, text)
}

// closeStatus returns the websocket status for a code.
func closeStatus(code signal.Code) int {
	switch code {
	case "":
		return websocket.CloseNormalClosure
	case signal.CodeDraining:
		return websocket.CloseGoingAway
	case signal.CodeTooLarge:
		return websocket.CloseMessageTooBig
	default:
		return websocket.ClosePolicyViolation
	}
}

// lingerTime is the time that a client has to close its side after the server has closed its own: some round trips of
// any network.
const lingerTime = time.Second

// close sends the websocket's close frame, closes the sending half of the connection, and limits the reader's wait for
// the client's half to lingerTime. The reason in the frame is the code, which fits in the 123 bytes of RFC 6455.
func (w *Writer) close(code signal.Code) {
	frame := websocket.FormatCloseMessage(closeStatus(code), string(code))
	_ = w.conn.WriteControl(websocket.CloseMessage, frame, time.Now().Add(slowReaderGrace))
	if half, ok := w.conn.NetConn().(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_ = w.conn.NetConn().SetReadDeadline(time.Now().Add(lingerTime))
}
