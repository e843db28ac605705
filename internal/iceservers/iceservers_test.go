package iceservers

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
)

var now = time.Unix(1_800_000_000, 0)

func TestParse(t *testing.T) {
	for text, want := range map[string]signal.ICEServer{
		"stun:stun.example.org": {URLs: []string{"stun:stun.example.org"}},
		"turn:a.example.org:3478?transport=udp  turns:a.example.org:443?transport=tcp username=ada credential=a=b": {
			URLs:     []string{"turn:a.example.org:3478?transport=udp", "turns:a.example.org:443?transport=tcp"},
			Username: "ada", Credential: "a=b",
		},
		"turn:[2001:db8::1]:3478 secret=north": {
			// printf '%s' 1800086400:s1 | openssl dgst -sha1 -hmac north -binary | base64
			URLs: []string{"turn:[2001:db8::1]:3478"}, Username: "1800086400:s1",
			Credential: "rEEBDJWV2zau9Z80TOqSvPZBqF4=",
		},
	} {
		servers, err := Parse([]string{text})
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := servers[0].For("s1", now); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, expected %+v", text, got, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"", "username=ada credential=geheim", "stun.example.org", "http://example.org", "turn:a.example.org",
		"turn:a.example.org username=ada", "turn:a.example.org credential=geheim", "turn:a.example.org secret=",
		"turn:a.example.org secret=geheim username=ada credential=geheim", "turn:a.example.org password=geheim",
		"turn:a.example.org secret=geheim secret=geheim", "turn:a.example.org:port secret=geheim",
	} {
		_, err := Parse([]string{"stun:stun.example.org", text})
		if !errors.Is(err, ErrServer) || !strings.Contains(err.Error(), "invalid ICE server 2: ") {
			t.Errorf("%q: error is %v", text, err)
		} else if strings.Contains(err.Error(), "geheim") {
			t.Errorf("%q: the error shows a secret: %v", text, err)
		}
	}
}
