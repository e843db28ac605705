package signalling

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/pkg/signal"
)

// readAll reads a websocket to its end and returns the final error and the number of pongs.
func readAll(t *testing.T, config Config, send func(*websocket.Conn)) (i *Inbox, heard int, ended error) {
	t.Helper()
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		upgrader := NewUpgrader(&config)
		conn, err := Upgrade(&upgrader, w, r)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		i = NewInbox(conn, &config)
		i.TakeControl(func() { heard++ })
		for ended == nil {
			_, _, ended = i.Read()
		}
	}))
	defer server.Close()
	conn, _, err := websocket.DefaultDialer.Dial("ws"+server.URL[len("http"):], nil)
	if err != nil {
		t.Fatal(err)
	}
	send(conn)
	// All messages have been sent, even if the inbox has not read them.
	_ = conn.WriteControl(websocket.CloseMessage, nil, time.Now().Add(patience))
	<-done
	_ = conn.Close()
	return i, heard, ended
}

// TestControlFramesCount checks that pings and pongs count against the message rate.
func TestControlFramesCount(t *testing.T) {
	config := DefaultConfig()
	config.MessageRate, config.MessageBurst = 1e-9, 10
	for name, kind := range map[string]int{"pings": websocket.PingMessage, "pongs": websocket.PongMessage} {
		for _, test := range []struct {
			frames  int
			refused bool
		}{{10, false}, {11, true}} {
			i, heard, ended := readAll(t, config, func(conn *websocket.Conn) {
				for range test.frames {
					if err := conn.WriteControl(kind, []byte("x"), time.Now().Add(patience)); err != nil {
						t.Fatal(err)
					}
				}
			})
			violated := i.Violation(ended)
			if (violated != nil && violated.Code == signal.CodeRateLimited) != test.refused {
				t.Errorf("%d %s: ended with %v", test.frames, name, ended)
			}
			want := 0
			if kind == websocket.PongMessage {
				want = 10
			}
			if heard != want {
				t.Errorf("%d %s: %d pongs were heard, expected %d", test.frames, name, heard, want)
			}
		}
	}
}

// TestEmptyFramesAreLimited sends messages of many frames: a client that fragments messages is not limited, and one
// that sends empty frames is, although its message has no bytes.
func TestEmptyFramesAreLimited(t *testing.T) {
	config := DefaultConfig()
	config.MessageRate, config.ByteRate = 1e-9, 1e-9
	for _, test := range []struct {
		name            string
		frames, payload int
		refused         bool
	}{
		{"frames of 2 kB", 800, 2048, false},
		{"a message of few bytes", 100, 1, false},
		{"empty frames", 200_000, 0, true},
		{"frames of one byte", 200_000, 1, true},
	} {
		i, _, ended := readAll(t, config, func(conn *websocket.Conn) {
			var sent []byte
			for n := range test.frames {
				// A text frame, continuations, and a last one (RFC 6455 section 5.2), masked with zeros.
				head := byte(0)
				if n == 0 {
					head = websocket.TextMessage
				}
				if n == test.frames-1 {
					head |= 0x80
				}
				sent = append(sent, head)
				if test.payload < 126 {
					sent = append(sent, 0x80|byte(test.payload))
				} else {
					sent = append(sent, 0x80|126, byte(test.payload>>8), byte(test.payload))
				}
				sent = append(sent, make([]byte, 4+test.payload)...)
			}
			// The server ends the websocket before it has read everything.
			_, _ = conn.NetConn().Write(sent)
		})
		violated := i.Violation(ended)
		if (violated != nil && violated.Code == signal.CodeRateLimited) != test.refused {
			t.Errorf("%s: ended with %v", test.name, ended)
		}
	}
}
