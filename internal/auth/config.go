package auth

import (
	"fmt"
	"time"
)

// Config says which keys sign tokens.
type Config struct {
	Keys    []string `yaml:"keys" secret:"true" help:"keys that sign tokens, each KID:SECRET or KID:base64:DATA, with secrets of 32 bytes or more; the first one mints. Prefer key_file: flags and the environment can be read by other processes"`
	KeyFile string   `yaml:"key_file" help:"file with one key per line in the same form; empty lines and lines that begin with # are passed over"`
	// Leeway: the clocks of hosts that run NTP differ by less than a second; 10 s bears with one that has just started.
	Leeway time.Duration `yaml:"leeway" help:"difference between the clocks of who mints and who verifies that is put up with"`
}

// DefaultConfig has no keys.
func DefaultConfig() Config {
	return Config{Leeway: 10 * time.Second}
}

// maxLeeway: more than that is a broken clock, and prolongs every token.
const maxLeeway = 5 * time.Minute

// Validate reports the first setting that is wrong. It does not read the key file.
func (c Config) Validate() error {
	if c.Leeway < 0 || c.Leeway > maxLeeway {
		return fmt.Errorf("%w: leeway is %v, expected 0 to %v", ErrConfig, c.Leeway, maxLeeway)
	}
	_, err := parseKeys(c.Keys)
	return err
}
