package config

import (
	"fmt"
	"net"
	"time"

	"github.com/volsfu/volsfu/internal/priority"
)

// Server tunes the process and its listener.
type Server struct {
	Listen  string `yaml:"listen" flag:"listen" help:"address of signalling, viewer and console"`
	TLSCert string `yaml:"tls_cert" flag:"tls-cert" help:"file with the certificate chain (PEM); with tls_key it makes the listener https and wss"`
	TLSKey  string `yaml:"tls_key" flag:"tls-key" help:"file with the certificate's private key (PEM)"`
	// AddressConnections: a browser has up to six, which it keeps for a while: 170 of them behind one NAT.
	AddressConnections int `yaml:"address_connections" help:"connections to the listener at once from one address (of IPv6, from one prefix of 64 bits) that are no websockets; of this host and of signalling.trusted_proxies any number"`
	// DrainTime is below the 30 s after which Kubernetes kills, and the 90 s of systemd.
	DrainTime time.Duration `yaml:"drain_time" flag:"drain-time" help:"how long rooms may go on after SIGTERM before what is left of them is closed"`
	// Nice: beside compilers on both of two processors, the slowest hundredth of packets stayed for up to 0.2 s and up to a fifth were lost at 0, for 20 ms and none at -10.
	Nice int  `yaml:"nice" help:"niceness that the server gives itself on Linux where it may, -20 to 0: beside programs that are busy it runs first; 0 leaves that to who starts it"`
	Dev  bool `yaml:"dev" flag:"dev" help:"for development: no token is asked for, and only loopback addresses are listened on"`
}

// DefaultServer listens on every address, without TLS.
func DefaultServer() Server {
	return Server{Listen: ":8080", AddressConnections: 1024, DrainTime: 20 * time.Second, Nice: -10}
}

// maxDrainTime is a day: a longer conference will not end by itself.
const maxDrainTime = 24 * time.Hour

// Validate reports the first key that is wrong. It does not read the files.
func (s Server) Validate() error {
	if _, port, err := net.SplitHostPort(s.Listen); err != nil || port == "" {
		return fmt.Errorf("%w: listen is %q, expected HOST:PORT or :PORT", ErrValue, s.Listen)
	}
	if (s.TLSCert == "") != (s.TLSKey == "") {
		return fmt.Errorf("%w: tls_cert is %q and tls_key is %q, expected both or neither", ErrValue, s.TLSCert, s.TLSKey)
	}
	if s.AddressConnections < 1 {
		return fmt.Errorf("%w: address_connections is %d, expected 1 or more", ErrValue, s.AddressConnections)
	}
	if s.Nice < priority.Lowest || s.Nice > 0 {
		return fmt.Errorf("%w: nice is %d, expected %d to 0", ErrValue, s.Nice, priority.Lowest)
	}
	if s.DrainTime < 0 || s.DrainTime > maxDrainTime {
		return fmt.Errorf("%w: drain_time is %v, expected 0 to %v", ErrValue, s.DrainTime, maxDrainTime)
	}
	return nil
}
