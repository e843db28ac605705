package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/netip"
	"path/filepath"
	"testing"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/acme"
	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/test/authority"
	"github.com/volsfu/volsfu/test/wait"
)

// TestACME obtains a certificate through the listener of signalling, which then serves pages with it.
func TestACME(t *testing.T) {
	const domain = "sfu.example.org"
	ca := authority.New(t)
	s := &Server{log: zap.NewNop(), config: config.DefaultConfig(), files: &reloader{log: zap.NewNop()}}
	s.config.Server.Listen = "127.0.0.1:0"
	issuing := make(chan struct{})
	// The issuer starts before the listener, whose address the authority needs.
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		<-issuing
		return ca.Transport().RoundTrip(r)
	})
	if err := s.startACME(acme.Config{
		Domains: []string{domain}, Cache: filepath.Join(t.TempDir(), "acme"), Directory: ca.URL(), Transport: transport,
	}); err != nil {
		t.Fatal(err)
	}
	s.connections = newConnections(1<<10, func(netip.Addr) bool { return true })
	if err := s.listen(http.NotFoundHandler(), nil); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Stop(context.Background()) }()
	ca.Reach(s.listener.Addr().String())
	close(issuing)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		RootCAs: ca.Roots(), ServerName: domain}}}
	wait.Until(t, "pages are served with the certificate", func() bool {
		response, err := client.Get("https://" + s.listener.Addr().String() + "/")
		if err != nil {
			return false
		}
		return errors.Join(response.Body.Close()) == nil && response.StatusCode == http.StatusNotFound
	})
	// The protocol of challenges reaches no handler.
	conn, err := tls.Dial("tcp", s.listener.Addr().String(), &tls.Config{RootCAs: ca.Roots(), ServerName: domain,
		NextProtos: []string{acme.Protocol, "http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if protocol := conn.ConnectionState().NegotiatedProtocol; protocol != "http/1.1" {
		t.Errorf("the protocol is %q, expected the preference of the server", protocol)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
