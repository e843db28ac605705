package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/test/certificate"
)

// TestCertificateThatIsMissing: a server without its certificate does not start.
func TestCertificateThatIsMissing(t *testing.T) {
	s := &Server{log: zap.NewNop(), config: config.DefaultConfig(), files: &reloader{log: zap.NewNop()}}
	s.config.Server.TLSCert, s.config.Server.TLSKey = filepath.Join(t.TempDir(), "certificate"),
		filepath.Join(t.TempDir(), "key")
	if err := s.configureTLS(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
}

// TestStrictTransport: only a server with a certificate makes browsers use TLS in future.
func TestStrictTransport(t *testing.T) {
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	for _, secure := range []bool{true, false} {
		t.Run(fmt.Sprintf("TLS %t", secure), func(t *testing.T) {
			s := newStage(t, func(c *config.Config) {
				if secure {
					files := certificate.New(t, "127.0.0.1")
					c.Server.TLSCert, c.Server.TLSKey = files.Certificate, files.Key
				}
			})
			response, err := client.Get(strings.Replace(s.URL(), "ws", "http", 1) + "/")
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			got := response.Header.Get("Strict-Transport-Security")
			if (got == strictTransport) != secure || !secure && got != "" {
				t.Errorf("the header is %q", got)
			}
		})
	}
}

// TestNamesInCertificates: a pattern covers the name of a node, and no name without a cluster.
func TestNamesInCertificates(t *testing.T) {
	for name, test := range map[string]struct {
		certificate x509.Certificate
		node, want  string
	}{
		"a name":                  {x509.Certificate{DNSNames: []string{"a.org", "b.org"}}, "n1", "a.org"},
		"a pattern":               {x509.Certificate{DNSNames: []string{"*.a.org"}}, "n1", "n1.a.org"},
		"a pattern, no cluster":   {x509.Certificate{DNSNames: []string{"*.a.org", "b.org"}}, "", "b.org"},
		"an address":              {x509.Certificate{IPAddresses: []net.IP{{192, 0, 2, 7}}}, "n1", "192.0.2.7"},
		"only a pattern, no name": {x509.Certificate{DNSNames: []string{"*.a.org"}}, "", ""},
	} {
		if got := nameIn(&test.certificate, test.node); got != test.want {
			t.Errorf("%s: expected %q, got %q", name, test.want, got)
		}
	}
}
