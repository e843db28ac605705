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

// TestWebsocketsByOneToken counts by what a token says, however its signature is written.
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
		for _, door := range []struct {
			what, token string
			status      int
		}{
			{"the first", ada, http.StatusSwitchingProtocols},
			{"the second by the same token", ada, http.StatusTooManyRequests},
			{"one by another", grace, http.StatusSwitchingProtocols},
		} {
			conn, response, err := websocket.DefaultDialer.Dial(s.URL()+path+"access_token="+door.token, nil)
			if response == nil {
				t.Fatal(err)
			}
			if response.StatusCode != door.status {
				t.Errorf("%s%s: status %d, expected %d", path, door.what, response.StatusCode, door.status)
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
		t.Error("tokens are told apart by more than what they say, or by less")
	}
}

// alphabet is that of base64 in tokens (RFC 4648, section 5).
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
