package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/authority"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/test/certificate"
)

func TestClockSettings(t *testing.T) {
	for _, test := range []struct {
		source, offset string
		shift          time.Duration
		fails          bool
	}{
		{"", "", 0, false},
		{"ptp", "", 0, false},
		{"estimated", "-1.5s", -1500 * time.Millisecond, false},
		{"sundial", "", 0, true},
		{"", "soon", 0, true},
	} {
		t.Setenv(clockOffsetVariable, test.offset)
		source, shift, err := clockSettings(test.source)
		if (err != nil) != test.fails || !test.fails && (string(source) != test.source || shift != test.shift) {
			t.Errorf("%q moved by %q: got %q, %v, %v", test.source, test.offset, source, shift, err)
		}
	}
	t.Setenv(clockOffsetVariable, "")
	if _, _, err := clockSettings("sundial"); !errors.Is(err, errClock) {
		t.Errorf("error is %v, expected errClock", err)
	}
}

// TestUnusableInterfaceIsNamed joins with an interface that does not exist.
func TestUnusableInterfaceIsNamed(t *testing.T) {
	room := Room{Server: "ws://127.0.0.1:1", Name: "lab", Identity: "ada", Interfaces: "lo,none-of-this-name"}
	_, err := room.Join(t.Context(), client.Config{})
	const want = `--interfaces: unusable network interface: this host has no interface "none-of-this-name"`
	if err == nil || err.Error() != want {
		t.Errorf("error is %v, expected: %s", err, want)
	}
}

// TestTokenOfEnvironment: the flag has precedence over the variable.
func TestTokenOfEnvironment(t *testing.T) {
	t.Setenv(TokenVariable, "of the environment")
	for flag, want := range map[string]string{"": "of the environment", "of the flag": "of the flag"} {
		room := Room{Token: flag}
		if err := room.Check(); err != nil || room.Token != want {
			t.Errorf("with the flag %q the token is %q, %v", flag, room.Token, err)
		}
	}
	t.Setenv(TokenVariable, "")
	if err := (&Room{}).Check(); !errors.Is(err, errNotTold) {
		t.Errorf("without a token the error is %v", err)
	}
}

// TestAuthority: with --ca the authorities of the file are trusted, and no others.
func TestAuthority(t *testing.T) {
	own, foreign := certificate.New(t, "127.0.0.1"), certificate.New(t, "127.0.0.1")
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	pair, err := tls.LoadX509KeyPair(own.Certificate, own.Key)
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	for file, trusted := range map[string]bool{own.Certificate: true, foreign.Certificate: false, "": false} {
		room := Room{Server: "wss" + strings.TrimPrefix(server.URL, "https"), Name: "lab", Identity: "ada",
			Authority: file}
		_, err := room.Join(t.Context(), client.Config{})
		// The server answers 404 to clients that trust its certificate.
		if unknown := (x509.UnknownAuthorityError{}); errors.As(err, &unknown) == trusted || err == nil {
			t.Errorf("with the file %q the error is %v", file, err)
		}
	}
	for _, test := range []struct {
		room Room
		want error
	}{
		{Room{Server: "ws://127.0.0.1:1", Authority: own.Certificate}, errNoTLS},
		{Room{Server: "wss://127.0.0.1:1", Authority: own.Key}, authority.ErrFile},
		{Room{Server: "wss://127.0.0.1:1", Authority: own.Key + ".none"}, fs.ErrNotExist},
	} {
		if _, err := test.room.Join(t.Context(), client.Config{}); !errors.Is(err, test.want) {
			t.Errorf("%+v: the error is %v, expected %v", test.room, err, test.want)
		}
	}
}
