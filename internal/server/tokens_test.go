package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/internal/config"
)

// TestWebsocketsByOneToken counts websockets by the content of a token, for any encoding of its signature.
func TestWebsocketsByOneToken(t *testing.T) {
	keys := signing()
	keyring, err := auth.NewKeyring(keys)
	if err != nil {
		t.Fatal(err)
	}
	mint := func(identity string) string {
		claims := auth.Claims{Identity: identity, Publish: true, Subscribe: true, Expires: time.Now().Add(time.Hour)}
		text, err := keyring.Mint("", claims, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	s := newStage(t, func(c *config.Config) {
		c.Server.Dev, c.Auth = false, keys
		c.Signalling.TokenWebsockets, c.Signalling.TokenRate, c.Signalling.TokenBurst = 10, 1e-9, 1
	})
	for _, path := range []string{"/v1/signal?", "/websocket?clientid=3&"} {
		ada, grace := mint("3"), mint("")
		for _, entry := range []struct {
			what, token string
			status      int
		}{
			{"the first", ada, http.StatusSwitchingProtocols},
			{"the second by the same token", ada, http.StatusTooManyRequests},
			{"one by another", grace, http.StatusSwitchingProtocols},
		} {
			conn, response, err := websocket.DefaultDialer.Dial(s.URL()+path+"access_token="+entry.token, nil)
			if response == nil {
				t.Fatal(err)
			}
			if response.StatusCode != entry.status {
				t.Errorf("%s%s: status %d, expected %d", path, entry.what, response.StatusCode, entry.status)
			}
			if err == nil {
				_ = conn.Close()
			}
		}
	}
	text := mint("3")
	last := strings.IndexByte(alphabet, text[len(text)-1])
	again := text[:len(text)-1] + alphabet[last^1:][:1]
	if fingerprint(text) != fingerprint(again) || fingerprint(text) == fingerprint(mint("4")) {
		t.Error("tokens are not identified by exactly their content")
	}
}

// alphabet is that of base64 in tokens (RFC 4648, section 5).
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// TestRevokedTokens: revoking a token ends its session, and the token opens neither a websocket nor the operators' API
// until it is restored.
func TestRevokedTokens(t *testing.T) {
	keys := signing()
	keyring, err := auth.NewKeyring(keys)
	if err != nil {
		t.Fatal(err)
	}
	claims := auth.Claims{ID: "one", Identity: "ada", Room: "lab", Publish: true, Admin: true,
		Expires: time.Now().Add(time.Hour)}
	token, err := keyring.Mint("", claims, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t, func(c *config.Config) { c.Server.Dev, c.Auth = false, keys })
	dial := func() (*websocket.Conn, int) {
		conn, response, err := websocket.DefaultDialer.Dial(s.URL()+"/v1/signal?access_token="+token, nil)
		if response == nil {
			t.Fatal(err)
		}
		return conn, response.StatusCode
	}
	rooms := func() int {
		address := strings.Replace(s.URL(), "ws", "http", 1) + "/admin/v1/rooms?access_token=" + token
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(address)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	conn, status := dial()
	if status != http.StatusSwitchingProtocols || rooms() != http.StatusOK {
		t.Fatalf("status %d by a token that is valid", status)
	}
	defer conn.Close()
	if err := conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"join","version":1}`)); err != nil {
		t.Fatal(err)
	}
	if _, text, err := conn.ReadMessage(); err != nil || !strings.Contains(string(text), `"type":"joined"`) {
		t.Fatalf("the reply to the join is %.200s, %v", text, err)
	}
	if err := s.node.Revoke("one", 0); err != nil {
		t.Fatal(err)
	}
	for {
		_, text, err := conn.ReadMessage()
		if err != nil {
			t.Fatalf("the websocket ended without a reason: %v", err)
		}
		if strings.Contains(string(text), `"code":"revoked"`) {
			break
		}
	}
	if _, status := dial(); status != http.StatusUnauthorized || rooms() != http.StatusUnauthorized {
		t.Errorf("status %d by a token that is revoked", status)
	}
	if err := s.node.Restore("one"); err != nil {
		t.Fatal(err)
	}
	again, status := dial()
	if status != http.StatusSwitchingProtocols || rooms() != http.StatusOK {
		t.Fatalf("status %d by a token that is accepted again", status)
	}
	_ = again.Close()
}
