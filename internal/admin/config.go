package admin

import (
	"errors"
	"fmt"
	"net"
)

// ErrConfig is wrapped with the setting that is wrong and what was expected.
var ErrConfig = errors.New("invalid admin configuration")

// Config tunes the operators' listener.
type Config struct {
	Listen string `yaml:"listen" flag:"admin-listen" help:"address of the operators' listener (metrics, health, profiles), which asks for no token: keep it on loopback or a private network; empty turns it off"`
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
	if _, port, err := net.SplitHostPort(c.Listen); err != nil || port == "" {
		return fmt.Errorf("%w: listen is %q, expected HOST:PORT or :PORT", ErrConfig, c.Listen)
	}
	return nil
}
