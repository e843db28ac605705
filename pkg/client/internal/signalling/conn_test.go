package signalling

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
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

// piped is the response of an HTTP request over a pipe, which becomes a websocket.
type piped struct {
	http.ResponseWriter
	conn    net.Conn
	buffers *bufio.ReadWriter
}

// Hijack implements http.Hijacker.
func (p *piped) Hijack() (net.Conn, *bufio.ReadWriter, error) { return p.conn, p.buffers, nil }

// pipe returns both ends of a websocket in this process.
func pipe(t *testing.T) (client, server *websocket.Conn) {
	t.Helper()
	near, far := net.Pipe()
	upgraded := make(chan error, 1)
	go func() {
		buffers := bufio.NewReadWriter(bufio.NewReader(far), bufio.NewWriter(far))
		request, err := http.ReadRequest(buffers.Reader)
		if err == nil {
			server, err = (&websocket.Upgrader{}).Upgrade(&piped{conn: far, buffers: buffers}, request, nil)
		}
		upgraded <- err
	}()
	dialer := websocket.Dialer{NetDial: func(string, string) (net.Conn, error) { return near, nil }}
	client, _, err := dialer.Dial("ws://server", nil)
	if err := errors.Join(err, <-upgraded); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// TestAServerThatOnlyAnswersIsNotLeft: for many times the longest permitted silence, a server sends nothing but pongs.
func TestAServerThatOnlyAnswersIsNotLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pipe(t)
		pings := 0
		answer := server.PingHandler()
		server.SetPingHandler(func(data string) error {
			pings++
			return answer(data)
		})
		left := make(chan struct{})
		go func() {
			defer close(left)
			_, _, _ = server.ReadMessage()
		}()
		c := start(client, &Config{Times: DefaultTimes})
		time.Sleep(20 * DefaultTimes.Silence)
		synctest.Wait()
		select {
		case <-c.Messages():
			t.Errorf("the websocket has ended: %v", c.Err())
		default:
		}
		if want := int(20 * DefaultTimes.Silence / DefaultTimes.Ping); pings != want {
			t.Errorf("the server has answered %d pings, expected %d", pings, want)
		}
		c.Close()
		_ = server.Close()
		<-left
	})
}

// TestASilentServerIsLeft: a server that answers no ping is left after the longest permitted silence.
func TestASilentServerIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pipe(t)
		go func() { _, _ = io.Copy(io.Discard, server.NetConn()) }()
		c, began := start(client, &Config{Times: DefaultTimes}), time.Now()
		if _, open := <-c.Messages(); open {
			t.Error("a message came")
		}
		if took := time.Since(began); took != DefaultTimes.Silence {
			t.Errorf("the server was left after %v, expected %v", took, DefaultTimes.Silence)
		}
		c.Close()
		_ = server.Close()
	})
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
