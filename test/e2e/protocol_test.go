package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestRefusals sends messages that a server must reject, each with its error code, and checks whether the connection
// survives.
func TestRefusals(t *testing.T) {
	c := startConference(t, func(c *config.Config) {
		c.Signalling.MessageBytes = 64 << 10
		c.Rooms.ParticipantsPerRoom = 3
	})
	join := &signal.Join{Version: 1, Room: "room", Identity: "mallory", Receive: true}
	described := body(2, 2).Publication()
	oversized := described
	oversized.Name, oversized.Tiles = "oversized", make([]volumetric.Tile, 200)
	nameless := described
	nameless.Name = ""
	tests := []struct {
		name  string
		join  bool
		send  signal.Message
		text  string
		code  signal.Code
		fatal bool
	}{
		{name: "not JSON", text: "hello", code: signal.CodeMalformed, fatal: true},
		{name: "no type", text: "{}", code: signal.CodeMalformed, fatal: true},
		{name: "wrong field type", text: `{"type":"join","id":"7","version":"one"}`, code: signal.CodeInvalid},
		{name: "deeply nested", text: strings.Repeat(`{"a":`, 12000), code: signal.CodeMalformed, fatal: true},
		{name: "too large", text: `{"type":"leave","id":"` + strings.Repeat("x", 80<<10) + `"}`,
			code: signal.CodeTooLarge, fatal: true},
		{name: "another version", send: &signal.Join{Version: 99, Room: "room", Identity: "x"},
			code: signal.CodeVersion, fatal: true},
		{name: "unknown type", text: `{"type":"dance","id":"7"}`, code: signal.CodeUnknownType},
		{name: "not joined", send: &signal.Leave{}, code: signal.CodeNotJoined},
		{name: "no room", send: &signal.Join{Version: 1, Identity: "x"}, code: signal.CodeInvalid},
		{name: "control characters", send: &signal.Join{Version: 1, Room: "a\x00b", Identity: "x"},
			code: signal.CodeInvalid},
		{name: "unknown session", send: &signal.Join{Version: 1, Room: "room", Identity: "x",
			Resume: &signal.ResumeRequest{Session: "s", Secret: "t"}}, code: signal.CodeResume},
		{name: "joined twice", join: true, send: join, code: signal.CodeAlreadyJoined},
		{name: "nameless publication", join: true, send: &signal.Publish{Publication: nameless},
			code: signal.CodeInvalid},
		{name: "too many tracks", join: true, send: &signal.Publish{Publication: oversized}, code: signal.CodeLimit},
		{name: "unpublish nothing", join: true, send: &signal.Unpublish{Publication: "nothing"},
			code: signal.CodeNotFound},
		{name: "answer to nothing", join: true, send: &signal.Answer{Offer: 77, SDP: "v=0"},
			code: signal.CodeUnexpectedAnswer},
		{name: "garbage answer", join: true, send: &signal.Answer{Offer: 1, SDP: "garbage"},
			code: signal.CodeInvalidSDP},
		{name: "empty description", join: true,
			send: &signal.Answer{Offer: 1, SDP: "v=0\r\no=- 0 0 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n"},
			code: signal.CodeInvalidSDP},
		{name: "acknowledge nothing", join: true,
			send: &signal.Acknowledge{Slots: []signal.SlotGeneration{{MID: "nope", Generation: 1}}},
			code: signal.CodeNotFound},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := dialRaw(t, c.Server.URL())
			defer r.close()
			if test.join {
				r.join(&signal.Join{Version: 1, Room: "room", Identity: "mallory", Receive: true})
				expectMessage[*signal.Offer](r)
				defer func() {
					r.send(&signal.Leave{Header: signal.Header{ID: "bye"}})
					expectMessage[*signal.OK](r)
				}()
			}
			switch {
			case test.send != nil:
				test.send.Head().ID = "7"
				r.send(test.send)
			default:
				r.sendText(test.text)
			}
			refused := expectMessage[*signal.Error](r)
			if refused.Code != test.code {
				t.Errorf("code is %q (%s), expected %q", refused.Code, refused.Message, test.code)
			}
			if test.send != nil && refused.ID != "7" {
				t.Errorf("id is %q, expected that of the request", refused.ID)
			}
			if test.fatal {
				expectClose(t, r)
			}
		})
	}
}

// expectClose waits for the end of the websocket, ignoring earlier messages.
func expectClose(t *testing.T, r *raw) {
	t.Helper()
	for r.receive() != nil {
	}
}

func TestFloodingClosesOnlyTheFlooder(t *testing.T) {
	c := startConference(t, func(c *config.Config) { c.Signalling.MessageRate, c.Signalling.MessageBurst = 10, 50 })
	r := dialRaw(t, c.Server.URL())
	defer r.close()
	r.join(&signal.Join{Version: 1, Room: "room", Identity: "mallory"})
	for range 200 {
		if r.conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"time","t0_us":1}`)) != nil {
			break
		}
	}
	for {
		m := r.receive()
		if refused, ok := m.(*signal.Error); ok {
			if refused.Code != signal.CodeRateLimited {
				t.Errorf("code %q, expected %q", refused.Code, signal.CodeRateLimited)
			}
			break
		}
		if m == nil {
			t.Fatal("closed without a reason")
		}
	}
	other := dialRaw(t, c.Server.URL())
	defer other.close()
	other.join(&signal.Join{Version: 1, Room: "room", Identity: "bob"})
}

// TestMultipathIsConfirmed: the server confirms several paths to clients that have declared them, and only to these.
func TestMultipathIsConfirmed(t *testing.T) {
	c := startConference(t)
	for identity, multipath := range map[string]*signal.Multipath{"ada": nil, "grace": {}} {
		conn := dialRaw(t, c.Server.URL())
		joined := conn.join(&signal.Join{Version: 1, Room: "lab", Identity: identity, Multipath: multipath})
		if want := multipath != nil; joined.Multipath != want {
			t.Errorf("joined with %+v: multipath is %t, expected %t", multipath, joined.Multipath, want)
		}
		conn.close()
	}
}

func TestTokensAreAskedForWithoutDev(t *testing.T) {
	c := startConference(t, func(c *config.Config) {
		c.Server.Dev = false
		c.Auth.Keys = []string{"k1:0123456789abcdef0123456789abcdef"}
	})
	for _, token := range []string{"", "Bearer nonsense", "Basic xyz"} {
		header := http.Header{}
		if token != "" {
			header.Set("Authorization", token)
		}
		conn, response, err := websocket.DefaultDialer.Dial(c.Server.URL()+signal.Path, header)
		if err == nil {
			_ = conn.Close()
			t.Fatalf("token %q was accepted", token)
		}
		if response == nil || response.StatusCode != http.StatusUnauthorized {
			t.Errorf("token %q: response %v, expected 401", token, response)
		}
	}
}

func TestForeignOriginsAreRefused(t *testing.T) {
	c := startConference(t)
	for origin, want := range map[string]bool{"": true, "http://localhost:5173": true, "https://evil.example": false} {
		header := http.Header{}
		if origin != "" {
			header.Set("Origin", origin)
		}
		conn, _, err := websocket.DefaultDialer.Dial(c.Server.URL()+signal.Path, header)
		if got := err == nil; got != want {
			t.Errorf("origin %q: connected %v, expected %v", origin, got, want)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
}
