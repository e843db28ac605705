// Package authority reads the certificate authorities that a client trusts in place of the system's.
package authority

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// ErrFile is wrapped with the file.
var ErrFile = errors.New("expected a PEM file with certificates")

// Trust returns the TLS configuration of a client that trusts the authorities of a PEM file. The configuration is nil
// if the name of the file is empty. Errors are those of reading the file, or wrap ErrFile.
func Trust(file string) (*tls.Config, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: %w", file, ErrFile)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}
