package config

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/acme"
	"github.com/volsfu/volsfu/internal/process"
)

// Server configures the process and its listener.
type Server struct {
	Listen string `yaml:"listen" flag:"listen" help:"address of signalling, viewer and console"`
	// PublicURL is read by ParsePublicURL. If PublicURL is empty, the certificate or the address of the host gives the
	// address.
	PublicURL string `yaml:"public_url" flag:"public-url" help:"address for clients of a cluster, such as wss://HOST:8080"`

	TLSCert string `yaml:"tls_cert" flag:"tls-cert" help:"certificate chain (PEM file); enables https and wss"`
	TLSKey  string `yaml:"tls_key" flag:"tls-key" help:"private key of the certificate (PEM file)"`
	// ACMEDomains: the certificate authority connects to port 443 of each domain (TLS-ALPN-01, RFC 8737), which has to
	// be the port of Listen or forwarded to it.
	ACMEDomains   []string `yaml:"acme_domains" flag:"acme-domains" help:"domains for which ACME obtains certificates"`
	ACMECache     string   `yaml:"acme_cache" flag:"acme-cache" help:"directory of ACME's certificates and account"`
	ACMEDirectory string   `yaml:"acme_directory" flag:"acme-directory" help:"directory URL of the ACME server"`
	// AddressConnections is per /64 prefix for IPv6; this host and signalling.trusted_proxies have no limit. A browser
	// keeps up to six connections for a while: 170 browsers behind one NAT.
	AddressConnections int `yaml:"address_connections" help:"connections per address, without websockets"`
	// DrainTime is below the 30 s after which Kubernetes kills, and the 90 s of systemd.
	DrainTime time.Duration `yaml:"drain_time" flag:"drain-time" help:"maximum time from SIGTERM to closing rooms"`
	// Nice: with compilers running on both of two processors, the slowest hundredth of packets stayed for up to 0.2 s
	// and up to a fifth were lost at 0; at -10 for 20 ms, without loss.
	Nice int `yaml:"nice" help:"niceness on Linux if permitted, -20 to 0; 0 leaves the niceness unchanged"`
	// Edge is read by ParseEdge.
	Edge string `yaml:"edge" help:"edge of volnet that copies packets on receivers' trouble: RULE@/SOCKET"`
	Dev  bool   `yaml:"dev" flag:"dev" help:"development: no tokens, and loopback addresses only"`
}

// DefaultServer listens on every address, without TLS.
func DefaultServer() Server {
	return Server{
		Listen: ":8080", ACMEDirectory: acme.DefaultDirectory, AddressConnections: 1024, DrainTime: 20 * time.Second,
		Nice: -10,
	}
}

// maxDrainTime is a day: a longer conference is not expected to end.
const maxDrainTime = 24 * time.Hour

// Validate reports the first invalid key. Validate does not read the files.
func (s Server) Validate() error {
	if _, port, err := net.SplitHostPort(s.Listen); err != nil || port == "" {
		return fmt.Errorf("%w: listen is %q, expected HOST:PORT or :PORT", ErrValue, s.Listen)
	}
	if (s.TLSCert == "") != (s.TLSKey == "") {
		return fmt.Errorf("%w: tls_cert is %q and tls_key is %q, expected both or neither", ErrValue,
			s.TLSCert, s.TLSKey)
	}
	if err := s.validateACME(); err != nil {
		return err
	}
	if _, err := s.ParsePublicURL(); err != nil {
		return err
	}
	if s.AddressConnections < 1 {
		return fmt.Errorf("%w: address_connections is %d, expected 1 or more", ErrValue, s.AddressConnections)
	}
	if s.Nice < process.LowestNice || s.Nice > 0 {
		return fmt.Errorf("%w: nice is %d, expected %d to 0", ErrValue, s.Nice, process.LowestNice)
	}
	if s.DrainTime < 0 || s.DrainTime > maxDrainTime {
		return fmt.Errorf("%w: drain_time is %v, expected 0 to %v", ErrValue, s.DrainTime, maxDrainTime)
	}
	_, err := ParseEdge(s.Edge)
	return err
}

// ParsePublicURL returns the address of this server for clients, without a slash at the end, empty if there is none.
func (s Server) ParsePublicURL() (string, error) {
	if s.PublicURL == "" {
		return "", nil
	}
	u, err := url.Parse(s.PublicURL)
	if err != nil || u.Scheme != "ws" && u.Scheme != "wss" || u.Hostname() == "" ||
		(&url.URL{Scheme: u.Scheme, Host: u.Host}).String() != strings.TrimSuffix(s.PublicURL, "/") {
		return "", fmt.Errorf("%w: public_url is %q, expected wss://HOST, wss://HOST:PORT or the same with ws://", ErrValue,
			s.PublicURL)
	}
	if u.Scheme == "ws" && (s.TLSCert != "" || len(s.ACMEDomains) > 0) {
		return "", fmt.Errorf("%w: public_url is %q, expected wss://: the server has a certificate, so clients need TLS",
			ErrValue, s.PublicURL)
	}
	return strings.TrimSuffix(s.PublicURL, "/"), nil
}

func (s Server) validateACME() error {
	if len(s.ACMEDomains) == 0 {
		return nil
	}
	if s.TLSCert != "" {
		return fmt.Errorf("%w: acme_domains is %q and tls_cert is %q, expected only one of them", ErrValue,
			s.ACMEDomains, s.TLSCert)
	}
	if s.ACMECache == "" {
		return fmt.Errorf("%w: acme_cache is empty, expected a directory for the certificates: a server that requests "+
			"new certificates at each start exceeds the limits of certificate authorities", ErrValue)
	}
	for _, domain := range s.ACMEDomains {
		if !acme.ValidDomain(domain) {
			return fmt.Errorf("%w: acme_domains has %q, expected a host name with a dot, without a port and a wildcard",
				ErrValue, domain)
		}
	}
	if u, err := url.Parse(s.ACMEDirectory); err != nil || u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%w: acme_directory is %q, expected an https URL", ErrValue, s.ACMEDirectory)
	}
	return nil
}

// Edge is a rule of an edge of volnet on this host.
type Edge struct {
	// Rule is the name of the rule, Socket the absolute path of the edge's socket.
	Rule, Socket string
}

// ParseEdge returns the edge that a value of server.edge names, nil if the value is empty. The path of the socket
// begins at the first slash: names of rules have none.
func ParseEdge(text string) (*Edge, error) {
	if text == "" {
		return nil, nil
	}
	slash := strings.IndexByte(text, '/')
	rule, found := strings.CutSuffix(text[:max(slash, 0)], "@")
	if !found || rule == "" {
		return nil, fmt.Errorf("%w: edge is %q, expected RULE@/SOCKET, such as conference@/run/volnet/studio.sock",
			ErrValue, text)
	}
	return &Edge{Rule: rule, Socket: text[slash:]}, nil
}
