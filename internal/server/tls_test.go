package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/config"
)

// TestCertificateThatIsMissing: a server that could not start leaves no listener.
func TestCertificateThatIsMissing(t *testing.T) {
	s := &Server{log: zap.NewNop(), config: config.DefaultConfig()}
	s.config.Server.Listen = "127.0.0.1:0"
	s.config.Server.TLSCert, s.config.Server.TLSKey = filepath.Join(t.TempDir(), "certificate"),
		filepath.Join(t.TempDir(), "key")
	if err := s.listen(http.NotFoundHandler(), nil); err == nil {
		t.Fatal("it listens without a certificate")
	}
	if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closing the listener gave %v: it was open still", err)
	}
}

// certify writes a certificate for 127.0.0.1 and its key.
func certify(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(t.TempDir(), "certificate"), filepath.Join(t.TempDir(), "key")
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: certificate}, keyFile: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
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
					c.Server.TLSCert, c.Server.TLSKey = certify(t)
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
