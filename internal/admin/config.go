package admin

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// ErrConfig is the sentinel of an invalid setting. The wrapping error has the setting and the expected value.
var ErrConfig = errors.New("invalid admin configuration")

// Config configures the operators' listener.
type Config struct {
	Listen string `yaml:"listen" flag:"admin-listen" help:"listener without tokens: keep it private; empty is off"`
	// AllowedHosts applies to browsers; programs may use every name. A page whose own name resolves to this host is
	// refused.
	AllowedHosts []string `yaml:"allowed_hosts" help:"additional host names under which browsers may open the listener"`
}

// DefaultConfig listens on loopback.
func DefaultConfig() Config {
	return Config{Listen: "127.0.0.1:9090"}
}

// Validate reports the first invalid setting.
func (c Config) Validate() error {
	if c.Listen == "" {
		return nil
	}
	for _, host := range c.AllowedHosts {
		if host == "" || strings.ContainsAny(host, ":/ ") {
			return fmt.Errorf("%w: allowed_hosts has %q, expected a host name without a scheme and a port",
				ErrConfig, host)
		}
	}
	if _, port, err := net.SplitHostPort(c.Listen); err != nil || port == "" {
		return fmt.Errorf("%w: listen is %q, expected HOST:PORT or :PORT", ErrConfig, c.Listen)
	}
	return nil
}
