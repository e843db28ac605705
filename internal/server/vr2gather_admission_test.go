package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/internal/config"
)

// openWebsocket opens a websocket and returns the status, and the first message if it was admitted.
func openWebsocket(t *testing.T, s *stage, path string, header http.Header) (status int, text string) {
	t.Helper()
	conn, response, err := websocket.DefaultDialer.Dial(s.URL()+path, header)
	if response == nil {
		t.Fatal(err)
	}
	if err != nil {
		return response.StatusCode, ""
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	_, message, err := conn.ReadMessage()
	if err != nil {
		return response.StatusCode, err.Error()
	}
	return response.StatusCode, string(message)
}

// joined returns the number of participants in a room.
func (s *stage) joined(room, identity string) int {
	return s.logs.FilterMessage("participant joined").FilterField(zap.String("room", room)).FilterField(
		zap.String("participant", identity)).Len()
}

// TestVR2GatherRooms checks the room of an address.
func TestVR2GatherRooms(t *testing.T) {
	s := newStage(t)
	for _, entry := range []struct{ path, room, identity string }{
		{"/websocket?ntiles=2&nqualities=2&clientid=4", "vr2gather", "4"},
		{"/websocket?clientid=5", "vr2gather", "5"},
		{"/r/lab/websocket?ntiles=1&nqualities=1&clientid=4", "lab", "4"},
		{"/r/lab/websocket", "lab", "0"},
	} {
		status, text := openWebsocket(t, s, entry.path, nil)
		if status != http.StatusSwitchingProtocols || !strings.HasPrefix(text, `0@2@{"type":"offer","sdp":"v=0`) ||
			s.joined(entry.room, entry.identity) != 1 {
			t.Errorf("%s: status %d, %.40q, joined %d times", entry.path, status, text,
				s.joined(entry.room, entry.identity))
		}
	}
	long := "/r/" + strings.Repeat("x", 200) + "/websocket"
	if status, _ := openWebsocket(t, s, long, nil); status != http.StatusBadRequest {
		t.Errorf("a long room: status %d", status)
	}
}

// TestVR2GatherRoomsByHost selects the room by the HTTP Host.
func TestVR2GatherRoomsByHost(t *testing.T) {
	s := newStage(t, func(c *config.Config) { c.VR2Gather.RoomByHost = true })
	for _, host := range []string{"one.example:8094", "two.example:8094"} {
		status, _ := openWebsocket(t, s, "/websocket?clientid=1", http.Header{"Host": {host}})
		if status != http.StatusSwitchingProtocols || s.joined(host, "1") != 1 {
			t.Errorf("%s: status %d, joined %d times", host, status, s.joined(host, "1"))
		}
	}
}

// signing is a configuration with a key.
func signing() auth.Config {
	keys := auth.DefaultConfig()
	keys.Keys = []string{"first:0123456789abcdef0123456789abcdef"}
	return keys
}

// TestVR2GatherTokens checks admission with several tokens.
func TestVR2GatherTokens(t *testing.T) {
	keys := signing()
	keyring, err := auth.NewKeyring(keys)
	if err != nil {
		t.Fatal(err)
	}
	token := func(room, identity string) string {
		text, err := keyring.Mint("", auth.Claims{Room: room, Identity: identity, Publish: true, Subscribe: true,
			Expires: time.Now().Add(time.Hour)}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	s := newStage(t, func(c *config.Config) { c.Server.Dev, c.Auth = false, keys })
	for _, entry := range []struct {
		what, token string
		status      int
	}{
		{"no token", "", http.StatusUnauthorized},
		{"another room", token("lab", ""), http.StatusForbidden},
		{"another number", token("", "4"), http.StatusForbidden},
		{"any room", token("", ""), http.StatusSwitchingProtocols},
		{"this room and number", token("vr2gather", "3"), http.StatusSwitchingProtocols},
	} {
		status, text := openWebsocket(t, s, "/websocket?clientid=3&access_token="+entry.token, nil)
		if status != entry.status {
			t.Errorf("%s: status %d, %q, expected %d", entry.what, status, text, entry.status)
		}
		eventually(t, "the peer has left", func() bool {
			return s.logs.FilterMessage("participant left").Len() ==
				s.joined("vr2gather", "3")
		})
	}
}

// TestVR2GatherWithoutTokens admits only peers of the dialect if no token is required.
func TestVR2GatherWithoutTokens(t *testing.T) {
	s := newStage(t, func(c *config.Config) {
		c.Server.Dev, c.Auth, c.VR2Gather.RequireToken = false,
			signing(), false
	})
	if status, text := openWebsocket(t, s, "/websocket?clientid=3", nil); status != http.StatusSwitchingProtocols {
		t.Errorf("status %d, %q", status, text)
	}
	if status, _ := openWebsocket(t, s, "/v1/signal", nil); status != http.StatusUnauthorized {
		t.Errorf("signalling v1: status %d", status)
	}
}

// TestVR2GatherAlone checks that a server in place of VR2Gather's own lacks the other interfaces.
func TestVR2GatherAlone(t *testing.T) {
	s := newStage(t, func(c *config.Config) { c.Server.Dev, c.VR2Gather.RequireToken = false, false })
	if status, text := openWebsocket(t, s, "/websocket?clientid=3", nil); status != http.StatusSwitchingProtocols {
		t.Errorf("status %d, %q", status, text)
	}
	if status, _ := openWebsocket(t, s, "/v1/signal", nil); status != http.StatusNotFound {
		t.Errorf("signalling v1: status %d", status)
	}
}

// TestVR2GatherPages refuses pages of other servers if no token is required, and no other client: some clients that are
// not browsers send an origin.
func TestVR2GatherPages(t *testing.T) {
	for name, adjust := range map[string]func(*config.Config){
		"development": func(*config.Config) {},
		"no token":    func(c *config.Config) { c.Server.Dev, c.VR2Gather.RequireToken = false, false },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, adjust)
			for origin, want := range map[string]int{
				"":                      http.StatusSwitchingProtocols,
				"http://" + s.address(): http.StatusSwitchingProtocols,
				"http://localhost":      http.StatusSwitchingProtocols,
				"https://evil.example":  http.StatusForbidden,
				"null":                  http.StatusForbidden,
			} {
				header := http.Header{}
				if origin != "" {
					header.Set("Origin", origin)
				}
				left, refused := s.logs.FilterMessage("participant left").Len(), s.refusals("web pages of")
				status, text := openWebsocket(t, s, "/websocket?clientid=3", header)
				if status != want {
					t.Errorf("origin %q: status %d, %q, expected %d", origin, status, text, want)
				}
				// All connect under the same number.
				eventually(t, "the peer has left", func() bool {
					return s.logs.FilterMessage("participant left").Len() > left || s.refusals("web pages of") > refused
				})
			}
		})
	}
}
