package peer

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/volsfu/volsfu/internal/authority"
)

// TokenVariable is the environment variable of the token. Other users of the host can read command lines.
const TokenVariable = "VOLPEER_TOKEN"

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
	config, err := authority.Trust(r.Authority)
	if err != nil {
		return nil, fmt.Errorf("--ca: %w", err)
	}
	return config, nil
}
