package signalling

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/test/wait"
)

// longEnough bounds the wait of a test for an event that should come soon.
const longEnough = wait.Patience

// server starts a server that calls f with each websocket, and returns its URL.
func server(t *testing.T, f func(*websocket.Conn)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		f(conn)
	}))
	t.Cleanup(s.Close)
	return "ws" + strings.TrimPrefix(s.URL, "http")
}

func TestAddresses(t *testing.T) {
	for url, want := range map[string]string{
		"ws://localhost:8080":   "ws://localhost:8080/v1/signal",
		"ws://127.0.0.1:8080/":  "ws://127.0.0.1:8080/v1/signal",
		"ws://[::1]:8080":       "ws://[::1]:8080/v1/signal",
		"wss://sfu.example.org": "wss://sfu.example.org/v1/signal",
	} {
		if got := (Config{URL: url}).address(); got != want {
			t.Errorf("%s: the websocket is opened at %s, want %s", url, got, want)
		}
	}
}

// TestDefaultTimes: a client detects a silent server after three pings, and before the server expires the client.
func TestDefaultTimes(t *testing.T) {
	d := DefaultTimes
	if d.Silence >= 15*time.Second || d.Silence < 3*d.Ping {
		t.Errorf("%v of silence with pings every %v: expected three pings, and less than the 15 s of a server",
			d.Silence, d.Ping)
	}
}

// TestLastMessage: a message that has arrived by the end of the wait counts.
func TestLastMessage(t *testing.T) {
	c := &Conn{messages: make(chan signal.Message, 1)}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range attempts {
		c.messages <- &signal.Joined{}
		if _, open, err := c.receive(over); err != nil || !open {
			t.Fatalf("got %v, the message was there", err)
		}
	}
	if _, _, err := c.receive(over); !errors.Is(err, context.Canceled) {
		t.Errorf("without a message: got %v, want %v", err, context.Canceled)
	}
	close(c.messages)
	for range attempts {
		if _, open, err := c.receive(over); err != nil || open {
			t.Fatalf("a websocket that has ended: got %v, %v", open, err)
		}
	}
}

// TestAWebsocketThatTakesNothingHasEnded, even if the server's side is open.
func TestAWebsocketThatTakesNothingHasEnded(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	url := server(t, func(*websocket.Conn) { <-over })
	defer close(over)
	times := DefaultTimes
	times.Silence = time.Hour
	c, err := Dial(context.Background(), Config{URL: url, Times: times})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.conn.NetConn().(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if err := c.Send(&signal.Time{}); !errors.Is(err, ErrUnsent) {
		t.Fatalf("a message was taken: %v, want %v", err, ErrUnsent)
	}
	select {
	case <-c.messages:
	case <-time.After(longEnough):
		t.Error("the websocket is still read")
	}
}

// TestAPanicOfTheGoroutineThatReads ends the websocket with the error of Config.Panicked.
func TestAPanicOfTheGoroutineThatReads(t *testing.T) {
	url := server(t, func(conn *websocket.Conn) {
		_ = conn.WriteControl(websocket.PongMessage, nil, time.Now().Add(longEnough))
		_, _, _ = conn.ReadMessage()
	})
	conn, response, err := websocket.DefaultDialer.Dial(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	conn.SetPongHandler(func(string) error { panic("test") })
	panicked := errors.New("panicked")
	c := &Conn{
		conn: conn, times: DefaultTimes, messages: make(chan signal.Message), stop: make(chan struct{}),
		panicked: func(value any, stack []byte) error {
			if value != "test" || !strings.Contains(string(stack), "goroutine ") {
				t.Errorf("the panic is %v with the stack %q", value, stack)
			}
			return panicked
		},
	}
	go c.read()
	if _, open := <-c.messages; open {
		t.Error("a message came, expected the end of the websocket")
	}
	if !errors.Is(c.Err(), panicked) {
		t.Errorf("the websocket has ended with %v, expected %v", c.Err(), panicked)
	}
}

// TestWithoutASessionAPanicGoesOn: without Config.Panicked a panic is not recovered.
func TestWithoutASessionAPanicGoesOn(t *testing.T) {
	defer func() {
		if value := recover(); value != "test" {
			t.Errorf("the panic is %v, expected it to go on", value)
		}
	}()
	c := &Conn{}
	defer c.confine(new(error))
	panic("test")
}
