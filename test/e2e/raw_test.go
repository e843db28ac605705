package e2e

import (
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/pkg/signal"
)

// raw is a client that only sends the messages of the test.
type raw struct {
	t    *testing.T
	conn *websocket.Conn
}

func dialRaw(t *testing.T, url string) *raw {
	t.Helper()
	conn, _, err := websocket.DefaultDialer.Dial(url+signal.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &raw{t, conn}
}

func (r *raw) close() { _ = r.conn.Close() }

func (r *raw) send(m signal.Message) {
	r.t.Helper()
	data, err := signal.Encode(m)
	if err != nil {
		r.t.Fatal(err)
	}
	r.sendText(string(data))
}

func (r *raw) sendText(text string) {
	r.t.Helper()
	if err := r.conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		r.t.Fatal(err)
	}
}

// receive returns the next message, or nil if the websocket has ended.
func (r *raw) receive() signal.Message {
	r.t.Helper()
	_ = r.conn.SetReadDeadline(time.Now().Add(patience))
	_, data, err := r.conn.ReadMessage()
	if err != nil {
		return nil
	}
	m, err := signal.DecodeFromServer(data)
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}

// join joins and returns the reply.
func (r *raw) join(join *signal.Join) *signal.Joined {
	r.t.Helper()
	r.send(join)
	return expectMessage[*signal.Joined](r)
}

// expectMessage returns the next message of a type, ignoring others.
func expectMessage[M signal.Message](r *raw) M {
	r.t.Helper()
	for {
		m := r.receive()
		if m == nil {
			var none M
			r.t.Fatalf("the websocket ended before a %T arrived", none)
		}
		if wanted, ok := m.(M); ok {
			return wanted
		}
	}
}
