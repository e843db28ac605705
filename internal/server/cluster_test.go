package server

import (
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/internal/admin"
	"github.com/volsfu/volsfu/internal/cluster/certificate"
	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/test/wait"
)

// issued returns the certificate of a node whose authority is in a directory.
func issued(t *testing.T, directory, name string) *certificate.Node {
	t.Helper()
	authority, err := certificate.OpenAuthority(directory, "rooms", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(directory, name)
	if err := authority.Issue(at, name, "", time.Now(), time.Hour); err != nil {
		t.Fatal(err)
	}
	own, err := certificate.Load(at)
	if err != nil {
		t.Fatal(err)
	}
	return own
}

// TestOnlyNodesReachTheNodesListener connects with certificates of this cluster and of another one, and without.
func TestOnlyNodesReachTheNodesListener(t *testing.T) {
	directory := t.TempDir()
	issued(t, directory, "a")
	s := newStage(t, func(c *config.Config) {
		c.Cluster.URL, c.Cluster.Port, c.Cluster.Directory = "embedded://:0", 0, filepath.Join(directory, "a")
	})
	address := "wss://" + s.nodeListener.Addr().String() + signal.Path
	header := http.Header{"Volsfu-Client": {"192.0.2.1:7"}}
	dial := func(config *tls.Config) error {
		dialer := websocket.Dialer{TLSClientConfig: config, HandshakeTimeout: wait.Patience}
		conn, _, err := dialer.Dial(address, header)
		if err == nil {
			err = conn.WriteMessage(websocket.TextMessage,
				[]byte(`{"type": "join", "version": 1, "room": "hall", "identity": "ann"}`))
			_, _, failed := conn.ReadMessage()
			_ = conn.Close()
			err = errors.Join(err, failed)
		}
		return err
	}
	if err := dial(issued(t, directory, "b").TLS()); err != nil {
		t.Errorf("a node of the cluster: %v", err)
	}
	refused := s.member.Counts().Refused
	foreign := issued(t, t.TempDir(), "c").TLS()
	// The client trusts every server, so that the server decides.
	foreign.VerifyConnection = nil
	for name, config := range map[string]*tls.Config{
		"another cluster": foreign, "no certificate": {InsecureSkipVerify: true},
	} {
		if err := dial(config); err == nil {
			t.Errorf("%s: the websocket is accepted", name)
		}
	}
	wait.Until(t, "the foreign certificate is counted", func() bool { return s.member.Counts().Refused == refused+1 })
	wait.Until(t, "the accepted websocket has ended", func() bool { return s.signalling.Proxies().Home == 0 })
}

// TestAReplacedSecretIsRead: tickets of the former secret and of the new one are valid on a running node.
func TestAReplacedSecretIsRead(t *testing.T) {
	directory := t.TempDir()
	issued(t, directory, "a")
	s := newStage(t, func(c *config.Config) {
		c.Cluster.URL, c.Cluster.Port, c.Cluster.Directory = "embedded://:0", 0, filepath.Join(directory, "a")
	})
	join := func(resume *signal.ResumeRequest) *signal.Joined {
		t.Helper()
		conn, _, err := websocket.DefaultDialer.Dial(s.URL()+signal.Path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		text, err := signal.Encode(&signal.Join{Version: 1, Room: "hall", Identity: "ann", Resume: resume})
		if err == nil {
			err = conn.WriteMessage(websocket.TextMessage, text)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, text, err = conn.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		m, err := signal.DecodeFromServer(text)
		if err != nil {
			t.Fatal(err)
		}
		joined, ok := m.(*signal.Joined)
		if !ok {
			t.Fatalf("the server replies %s", text)
		}
		return joined
	}
	first := join(nil)
	replaced := t.TempDir()
	issued(t, replaced, "a")
	text, err := os.ReadFile(filepath.Join(replaced, "a", certificate.SecretFile))
	if err == nil {
		err = os.WriteFile(filepath.Join(directory, "a", certificate.SecretFile), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Reload()
	second := join(&signal.ResumeRequest{Session: first.Session, Secret: first.Resume.Secret, NewConnection: true})
	if !second.Resumed {
		t.Error("a ticket of the former secret does not resume the session")
	}
	third := join(&signal.ResumeRequest{Session: first.Session, Secret: second.Resume.Secret, NewConnection: true})
	if !third.Resumed {
		t.Error("a ticket of the new secret does not resume the session")
	}
}

// TestAddressesOfANode checks the address for clients of the configuration, and the one at which other nodes connect.
func TestAddressesOfANode(t *testing.T) {
	directory := t.TempDir()
	issued(t, directory, "a")
	s := newStage(t, func(c *config.Config) {
		c.Cluster.URL, c.Cluster.Port, c.Cluster.Directory = "embedded://:0", 0, filepath.Join(directory, "a")
		c.Server.PublicURL = "wss://a.sfu.example.org/"
	})
	if got := s.member.Self().URL; got != "wss://a.sfu.example.org" {
		t.Errorf("clients connect to %q", got)
	}
	for _, test := range []struct {
		host string
		dev  bool
		want string
	}{
		{"192.0.2.1", false, "0.0.0.0"}, {"2001:db8::1", false, "::"}, {"2001:db8::1", true, "127.0.0.1"},
		{"127.0.0.1", true, "127.0.0.1"},
	} {
		if got := listenAddress(test.host, test.dev); got.String() != test.want {
			t.Errorf("a node at %s listens on %v, expected %s", test.host, got, test.want)
		}
	}
}

// TestNodesAreDialedByName connects to a node whose address has become that of another.
func TestNodesAreDialedByName(t *testing.T) {
	directory := t.TempDir()
	issued(t, directory, "a")
	s := newStage(t, func(c *config.Config) {
		c.Cluster.URL, c.Cluster.Port, c.Cluster.Directory = "embedded://:0", 0, filepath.Join(directory, "a")
	})
	dialer := nodeDialer{s.member, issued(t, directory, "b")}
	if _, err := dialer.dial(t.Context(), "z"); !errors.Is(err, admin.ErrNode) {
		t.Errorf("a node that is not there: %v", err)
	}
	for name, want := range map[string]error{"a": nil, "b": certificate.ErrRefused} {
		config := dialer.own.TLSTo(name)
		conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", s.nodeListener.Addr().String())
		if !errors.Is(err, want) {
			t.Errorf("the listener of a as %s: %v", name, err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
}
