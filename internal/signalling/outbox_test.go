package signalling

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/pkg/signal"
)

// patience is the maximum wait for events that should occur at once.
const patience = 30 * time.Second

const backlog = 3

// uncounted discards counts.
type uncounted struct{}

func (uncounted) SignallingMessage(string, signal.Type) {}
func (uncounted) SignallingError(signal.Code)           {}

// pipes is a listener whose connections have no buffers: a write waits until the other side has read all of it.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	closing  sync.Once
}

func newPipes() *pipes {
	return &pipes{accepted: make(chan net.Conn, 1), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.accepted:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.closing.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	p.accepted <- far
	return near, nil
}

// newTestOutbox returns an outbox with a backlog of three messages and the websocket of its client, over unbuffered
// pipes or, if unbuffered is nil, over TCP.
func newTestOutbox(t *testing.T, unbuffered *pipes) (*outbox, *websocket.Conn) {
	t.Helper()
	config := DefaultConfig()
	config.Backlog = backlog
	// Neither timeout elapses during the test.
	config.WriteTimeout, config.PingInterval = time.Hour, time.Hour
	outboxes := make(chan *outbox, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			close(outboxes)
			return
		}
		o := newOutbox(conn, &config, uncounted{})
		outboxes <- o
		<-o.Written()
	}))
	dialer := websocket.Dialer{HandshakeTimeout: patience}
	if unbuffered != nil {
		_ = server.Listener.Close()
		server.Listener, dialer.NetDialContext = unbuffered, unbuffered.dial
	}
	server.Start()
	conn, _, err := dialer.Dial("ws://"+server.Listener.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	o, ok := <-outboxes
	if !ok {
		t.FailNow()
	}
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		o.Close("", "")
		waitWritten(t, o)
		server.Close()
	})
	return o, conn
}

func waitWritten(t *testing.T, o *outbox) {
	t.Helper()
	select {
	case <-o.Written():
	case <-time.After(patience):
		t.Fatal("timed out waiting for the writer to end")
	}
}

// block stops the outbox's writer within a message that the client has begun to read.
func block(t *testing.T, o *outbox, conn *websocket.Conn) {
	t.Helper()
	if !o.Send(&signal.OK{Header: signal.Header{ID: "first"}}) {
		t.Fatal("the first message was refused")
	}
	if _, err := io.ReadFull(conn.NetConn(), make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

func TestAFullBacklogIsReported(t *testing.T) {
	o, conn := newTestOutbox(t, newPipes())
	block(t, o, conn)
	for i := range backlog {
		if !o.Send(&signal.OK{}) {
			t.Errorf("message %d of a backlog of %d was refused", i, backlog)
		}
	}
	if o.Send(&signal.OK{}) {
		t.Errorf("message %d of a backlog of %d was taken", backlog, backlog)
	}
}

func TestCloseDoesNotWaitForASlowReader(t *testing.T) {
	o, conn := newTestOutbox(t, newPipes())
	block(t, o, conn)
	o.Close(signal.CodeSlowReader, "messages were not read in time")
	waitWritten(t, o)
	if _, err := io.Copy(io.Discard, conn.NetConn()); err != nil {
		t.Errorf("the connection ended with %v, expected its end", err)
	}
}

func TestQueuedMessagesAreWrittenBeforeTheClose(t *testing.T) {
	tests := []struct {
		code   signal.Code
		status int
	}{
		{"", websocket.CloseNormalClosure},
		{signal.CodeDraining, websocket.CloseGoingAway},
		{signal.CodeTooLarge, websocket.CloseMessageTooBig},
		{signal.CodeReplaced, websocket.ClosePolicyViolation},
		{signal.CodeSlowReader, websocket.ClosePolicyViolation},
	}
	for _, test := range tests {
		t.Run(string(test.code), func(t *testing.T) {
			o, conn := newTestOutbox(t, nil)
			// The queue of a client that does not read is discarded.
			queued := backlog
			if test.code == signal.CodeSlowReader {
				queued = 0
			}
			for i := range queued {
				o.Send(&signal.OK{Header: signal.Header{ID: strconv.Itoa(i)}})
			}
			o.Close(test.code, "a reason")
			o.Close(signal.CodeInternal, "another reason")
			if !o.Send(&signal.OK{Header: signal.Header{ID: "late"}}) {
				t.Error("a message after the end counts as one that is not read")
			}
			for i := range queued {
				ok, is := receive(t, conn).(*signal.OK)
				if !is || ok.ID != strconv.Itoa(i) {
					t.Fatalf("got %+v, expected reply %d", ok, i)
				}
			}
			if test.code != "" {
				closing, is := receive(t, conn).(*signal.Closing)
				if !is || closing.Code != test.code || closing.Message != "a reason" {
					t.Fatalf("got %+v, expected closing with %q", closing, test.code)
				}
			}
			_, _, err := conn.ReadMessage()
			var end *websocket.CloseError
			if !errors.As(err, &end) || end.Code != test.status || end.Text != string(test.code) {
				t.Errorf("the websocket ended with %v, expected status %d, %q", err, test.status, test.code)
			}
		})
	}
}

func receive(t *testing.T, conn *websocket.Conn) signal.Message {
	t.Helper()
	_, data, err := conn.ReadMessage()
	if err != nil {
		t.Fatal(err)
	}
	m, err := signal.DecodeFromServer(data)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
