package acme

import (
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/volsfu/volsfu/test/authority"
	"github.com/volsfu/volsfu/test/wait"
)

const first, second = "sfu.example.org", "other.example.org"

// stage is a listener with the certificates of an issuer, which the authority checks.
type stage struct {
	t         *testing.T
	authority *authority.Authority
	cache     string
	address   string
	// mu guards issuer: handshakes wait while an issuer starts.
	mu     sync.RWMutex
	issuer *Issuer
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, authority: authority.New(t), cache: filepath.Join(t.TempDir(), "acme")}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		GetCertificate: s.get, NextProtos: []string{"http/1.1", Protocol},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	var serving sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				_ = conn.(*tls.Conn).Handshake()
				_ = conn.Close()
			})
		}
	})
	return s
}

func (s *stage) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.issuer.GetCertificate(hello)
}

// start replaces the issuer, as a restart of the server does, and returns the new log.
func (s *stage) start() *observer.ObservedLogs {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.issuer != nil {
		s.issuer.Close()
	}
	core, logs := observer.New(zap.InfoLevel)
	issuer, err := Start(Config{
		Domains: []string{"SFU.example.org", second}, Cache: s.cache, Directory: s.authority.URL(),
		Transport: s.authority.Transport(),
	}, zap.New(core))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(issuer.Close)
	s.issuer = issuer
	return logs
}

// dial performs a handshake for a domain.
func (s *stage) dial(domain string) error {
	conn, err := tls.Dial("tcp", s.address, &tls.Config{ServerName: domain, RootCAs: s.authority.Roots()})
	if err != nil {
		return err
	}
	return conn.Close()
}

// await waits until a text is in the log for both domains.
func await(t *testing.T, logs *observer.ObservedLogs, text string) {
	t.Helper()
	wait.Until(t, "the log has both domains", func() bool { return logs.FilterMessageSnippet(text).Len() == 2 })
}

// TestIssuer obtains certificates by TLS-ALPN-01 from an authority that checks the domains, and reads them from the cache
// after a restart.
func TestIssuer(t *testing.T) {
	s := newStage(t)
	// The authority does not reach the server: each domain is reported, and handshakes fail without a request.
	await(t, s.start(), "issued no certificate")
	orders := s.authority.Orders()
	for range 5 {
		if s.dial(first) == nil {
			t.Fatal("there is a certificate that no authority has issued")
		}
	}
	if s.authority.Orders() != orders {
		t.Errorf("handshakes caused %d orders", s.authority.Orders()-orders)
	}

	s.authority.Reach(s.address)
	await(t, s.start(), "is ready")
	if err := errors.Join(s.dial(first), s.dial(second)); err != nil {
		t.Error(err)
	}
	if s.dial("foreign.example.org") == nil {
		t.Error("there is a certificate for a foreign domain")
	}
	if nameless, err := s.get(&tls.ClientHelloInfo{}); err != nil || nameless.Leaf.DNSNames[0] != first {
		t.Errorf("without a name: %v", err)
	}
	if info, err := os.Stat(s.cache); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the cache is %v, %v", info, err)
	}

	orders = s.authority.Orders()
	await(t, s.start(), "is ready")
	if s.authority.Orders() != orders {
		t.Errorf("a restart caused %d orders", s.authority.Orders()-orders)
	}
	s.issuer.Close()
	request, err := http.NewRequest(http.MethodGet, s.authority.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := s.issuer.manager.Client.HTTPClient.Do(request); err == nil {
		_ = response.Body.Close()
		t.Error("a closed issuer sends requests")
	}
}

// TestRetry: the next request after a failure comes at once if an operator asks for it. The manager answers from memory
// for a minute, so only the attempt is checked.
func TestRetry(t *testing.T) {
	s := newStage(t)
	logs := s.start()
	await(t, logs, "issued no certificate")
	s.issuer.Retry()
	wait.Until(t, "there is a second attempt", func() bool { return logs.Len() == 4 })
}

func TestRetryWait(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: 5 * time.Minute, 2: 10 * time.Minute, 4: 40 * time.Minute,
		5: time.Hour, 1000: time.Hour} {
		if got := retryWait(failures); got != want {
			t.Errorf("after %d failures %v, expected %v", failures, got, want)
		}
	}
}

func TestValidDomain(t *testing.T) {
	for name, want := range map[string]bool{"sfu.example.org": true, "bücher.example": true, "localhost": false,
		"*.example.org": false, "sfu.example.org:443": false, "": false, "a b.example": false} {
		if ValidDomain(name) != want {
			t.Errorf("%q is valid: %v", name, !want)
		}
	}
}

func TestCacheThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(Config{Domains: []string{first}, Cache: filepath.Join(file, "acme")}, zap.NewNop())
	if err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("the error is %v, expected the path", err)
	}
}
