// Package certificate makes certificates for tests and checks of TLS.
package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Files are a certificate that signs itself, valid for an hour, with its key.
type Files struct {
	// Certificate and Key are PEM files.
	Certificate, Key string
	// Pool trusts the certificate.
	Pool *x509.CertPool
}

// New makes a certificate for the addresses, which are those of IP.
func New(t testing.TB, addresses ...string) Files {
	t.Helper()
	f, err := Make(t.TempDir(), addresses...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Make is New with the files in a folder.
func Make(folder string, addresses ...string) (Files, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Files{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	for _, address := range addresses {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return Files{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Files{}, err
	}
	f := Files{filepath.Join(folder, "certificate.pem"), filepath.Join(folder, "key.pem"), x509.NewCertPool()}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	f.Pool.AppendCertsFromPEM(text)
	return f, errors.Join(os.WriteFile(f.Certificate, text, 0o600),
		os.WriteFile(f.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}
