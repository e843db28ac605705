package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
)

// TokenVariable is the environment variable of the token. Other users of the host can read command lines.
const TokenVariable = "VOLPEER_TOKEN"

// errAuthority is wrapped with the file of --ca.
var errAuthority = errors.New("expected a PEM file with certificates")

// errNoTLS is wrapped with the address of the server.
var errNoTLS = errors.New("expected a server with wss:// for --ca")

// TLS returns the TLS configuration of the connection to the server, nil without --ca. The authorities of --ca replace
// those of the system.
func (r *Room) TLS() (*tls.Config, error) {
	if r.Authority == "" {
		return nil, nil
	}
	if !strings.HasPrefix(r.Server, "wss://") {
		return nil, fmt.Errorf("%w, got %q", errNoTLS, r.Server)
	}
	text, err := os.ReadFile(r.Authority)
	if err != nil {
		return nil, fmt.Errorf("--ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--ca %s: %w", r.Authority, errAuthority)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}
