package admin

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// ErrConfig is wrapped with the setting that is wrong and what was expected.
var ErrConfig = errors.New("invalid admin configuration")

// Config tunes the operators' listener.
type Config struct {
	Listen string `yaml:"listen" flag:"admin-listen" help:"address of the operators' listener (metrics, health, profiles), which asks for no token: keep it on loopback or a private network; empty turns it off"`
	// AllowedHosts: programs may use every name. A page whose own name is resolved to this host must not.
	AllowedHosts []string `yaml:"allowed_hosts" help:"names under which browsers may open the operators' listener, beside addresses, localhost and names without a dot; programs such as Prometheus may use every name"`
}

// DefaultConfig listens on loopback.
func DefaultConfig() Config {
	return Config{Listen: "127.0.0.1:9090"}
}

// Validate reports the first setting that is wrong.
func (c Config) Validate() error {
	if c.Listen == "" {
		return nil
	}
	for _, host := range c.AllowedHosts {
		if host == "" || strings.ContainsAny(host, ":/ ") {
			return fmt.Errorf("%w: allowed_hosts has %q, expected a host name without a scheme and a port", ErrConfig, host)
		}
	}
	if _, port, err := net.SplitHostPort(c.Listen); err != nil || port == "" {
		return fmt.Errorf("%w: listen is %q, expected HOST:PORT or :PORT", ErrConfig, c.Listen)
	}
	return nil
}
