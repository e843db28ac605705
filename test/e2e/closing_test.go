package e2e

import (
	"errors"
	"io"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/pkg/signal"
)

// TestTheServerClosesWithoutAReset violates the protocol and continues to send. The server must also read this data
// before it closes: after a reset, clients on some systems, and all on networks that lose packets, would not receive
// the error message.
func TestTheServerClosesWithoutAReset(t *testing.T) {
	c := startConference(t)
	for range 10 {
		r := dialRaw(t, c.Server.URL())
		r.sendText("hello")
		for range 50 {
			if err := r.conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"time","t0_us":1}`)); err != nil {
				t.Fatal(err)
			}
		}
		if refused := expectMessage[*signal.Error](r); refused.Code != signal.CodeMalformed {
			t.Errorf("code %q, expected %q", refused.Code, signal.CodeMalformed)
		}
		if closing := expectMessage[*signal.Closing](r); closing.Code != signal.CodeMalformed {
			t.Errorf("closing for %q, expected %q", closing.Code, signal.CodeMalformed)
		}
		_, _, err := r.conn.ReadMessage()
		if !websocket.IsCloseError(err, websocket.ClosePolicyViolation) {
			t.Errorf("the websocket ends with %v, expected a close frame", err)
		}
		if _, err := r.conn.NetConn().Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the connection ends with %v, expected %v", err, io.EOF)
		}
		r.close()
	}
}
