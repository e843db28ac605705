package signalling

import (
	"time"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/pkg/signal"
)

// Queue is what a Writer writes.
type Queue interface {
	// Take returns the messages that wait, and whether they are the last ones, and then the code that the websocket is
	// closed with.
	Take() (messages []signal.Message, last bool, code signal.Code)
	// Encode returns the text of a message.
	Encode(signal.Message) ([]byte, error)
	// NotWritten says that a message could not be encoded or written, which ends the websocket.
	NotWritten(error)
}

// Writer is the writing side of a websocket. Its goroutine writes what a queue has until the queue has ended or writing
// fails. A failure closes the websocket; after an orderly end its reader does.
type Writer struct {
	conn   *websocket.Conn
	config *Config
	// written is closed when the goroutine has ended.
	written chan struct{}
	notify  chan struct{}
}

// NewWriter returns a writer, whose goroutine begins with Start.
func NewWriter(conn *websocket.Conn, config *Config) *Writer {
	return &Writer{conn: conn, config: config, written: make(chan struct{}), notify: make(chan struct{}, 1)}
}

// Start starts the writer's goroutine.
func (w *Writer) Start(q Queue) {
	go func() {
		// The reader notices that the websocket is closed, and ends the session.
		defer w.config.Guard.Recover(placeOutbox, func() { _ = w.conn.NetConn().Close() })
		w.run(q)
	}()
}

// Written is closed when the goroutine has ended.
func (w *Writer) Written() <-chan struct{} { return w.written }

// Wake says that the queue has something, or has ended.
func (w *Writer) Wake() {
	select {
	case w.notify <- struct{}{}:
	default:
	}
}

// slowReaderGrace is how long the last write to a client that does not read may go on: time for a reason to get into
// the socket's buffer.
const slowReaderGrace = 100 * time.Millisecond

// Abort ends the websocket of a client that does not read: a write that is under way fails soon, and so does the next.
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
	if err := w.conn.SetWriteDeadline(time.Now().Add(w.config.WriteTimeout)); err != nil {
		return err
	}
	return w.conn.WriteMessage(websocket.TextMessage, text)
}

// closeStatus returns the status that a websocket is closed with for a reason.
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

// lingerTime is how long a client may take to close its side after the server has closed its own: some round trips of
// any network.
const lingerTime = time.Second

// close sends the websocket's own close frame, closes the sending half of the connection, and lets the reader wait
// for the client's half no longer than lingerTime. The frame's reason is the code, which fits the 123 bytes that RFC
// 6455 allows.
func (w *Writer) close(code signal.Code) {
	frame := websocket.FormatCloseMessage(closeStatus(code), string(code))
	_ = w.conn.WriteControl(websocket.CloseMessage, frame, time.Now().Add(slowReaderGrace))
	if half, ok := w.conn.NetConn().(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_ = w.conn.NetConn().SetReadDeadline(time.Now().Add(lingerTime))
}
