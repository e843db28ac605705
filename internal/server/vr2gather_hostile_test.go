package server

import (
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/test/interop/oldpeer"
)

// TestVR2GatherHostile has clients of the dialect that send malformed messages, too many messages, and none. Each is
// refused with the reason in the log, and other clients are not affected. Each client has a server of its own, because
// the log omits lines if one address is refused often.
func TestVR2GatherHostile(t *testing.T) {
	repeated := func(text string, times int) func(*websocket.Conn) {
		return func(conn *websocket.Conn) {
			// The server may close the connection before the last message.
			for i := 0; i < times && conn.WriteMessage(websocket.TextMessage, []byte(text)) == nil; i++ {
			}
		}
	}
	for _, client := range []struct {
		name   string
		say    func(*websocket.Conn)
		code   string
		reason string
	}{
		{"messages without end", repeated("0@9@", 300), "rate_limited", "messages"},
		{"bytes without end", repeated("0@9@"+strings.Repeat("1", 1<<19), 3), "rate_limited", "bytes"},
		{"a message that is too long", repeated("0@9@"+strings.Repeat("1", 1<<20), 1), "too_large", "bytes"},
		{"an answer of no lines", repeated(`1@3@{"type":"answer",`+
			`"sdp":"v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n"}`, 1), "invalid_sdp", "0 lines"},
		{"an answer that is deep", repeated(`1@3@`+strings.Repeat("[", 1<<19), 1), "malformed", "session description"},
		{"a number that is none", repeated("99999999999@7@1,1", 1), "malformed", "client is"},
		{"choices without end, and no answer",
			repeated("0@7@"+strings.Repeat("1,0;", 1<<17), 1), "connection", "not answered within"},
		{"a candidate that is none",
			repeated("1@4@candidate:"+strings.Repeat("7 ", 1000), 1), "malformed", "candidate has 2009 bytes"},
		{"nothing but pongs", repeated("", 0), "connection", "not answered within"},
	} {
		t.Run(client.name, func(t *testing.T) {
			s := newStage(t, func(c *config.Config) {
				c.Rooms.AnswerTimeout = 3 * time.Second
				// The limits are so low that every client exceeds them, on any machine.
				c.Signalling.MessageRate, c.Signalling.MessageBurst = 1, 200
				c.Signalling.MessageBytes, c.Signalling.ByteRate, c.Signalling.ByteBurst = 1<<20, 1, 1<<20
			})
			var sent sums
			one := s.connect(t, oldpeer.Config{Client: 1, Tiles: 1, Qualities: 1})
			play(t, one, 1, 1, &sent)
			two := s.connect(t, oldpeer.Config{Client: 2, Tiles: 1, Qualities: 1})
			listens := listen(t, two, &sent)
			listens.more(t, "client 2 gets client 1", 1, 0, 5)
			s.endsWebsocket(t, client.say)
			eventually(t, "the log has the refusal: "+client.code, func() bool {
				for _, entry := range s.logs.FilterMessage("VR2Gather peer refused").All() {
					fields := entry.ContextMap()
					reason, _ := fields["reason"].(string)
					if fields["code"] == client.code && strings.Contains(reason, client.reason) {
						return true
					}
				}
				return false
			})
			listens.more(t, "client 2 goes on", 1, 0, 5)
			listens.sound(t, "client 2", two)
		})
	}
}

// endsWebsocket joins as client 3, reads the offer, and fails unless the server closes the websocket after say.
func (s *stage) endsWebsocket(t *testing.T, say func(*websocket.Conn)) {
	t.Helper()
	conn, _, err := websocket.DefaultDialer.Dial(s.URL()+"/websocket?ntiles=1&nqualities=1&clientid=3", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, _, err := conn.ReadMessage(); err != nil {
		t.Fatalf("no offer: %v", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, _, err := conn.ReadMessage(); err != nil {
				return
			}
		}
	}()
	say(conn)
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("the websocket is open")
	}
}
