package auth

import (
	"fmt"
	"time"
)

// Config configures the keys that sign tokens.
type Config struct {
	Keys    []string `yaml:"keys" secret:"true" help:"signing keys, KID:SECRET or KID:base64:DATA; prefer key_file"`
	KeyFile string   `yaml:"key_file" help:"file with one key per line in the same form; empty lines and # are ignored"`
	// Leeway: the clocks of hosts with NTP differ by less than a second; 10 s tolerates a host that has just started.
	Leeway time.Duration `yaml:"-"`
}

// DefaultConfig has no keys.
func DefaultConfig() Config {
	return Config{Leeway: 10 * time.Second}
}

// maxLeeway bounds the leeway, which prolongs every token: a larger difference is a broken clock.
const maxLeeway = 5 * time.Minute

// Validate reports the first invalid setting. Validate does not read the key file.
func (c Config) Validate() error {
	if c.Leeway < 0 || c.Leeway > maxLeeway {
		return fmt.Errorf("%w: leeway is %v, expected 0 to %v", ErrConfig, c.Leeway, maxLeeway)
	}
	_, err := parseKeys(c.Keys)
	return err
}
