package demand

import (
	"fmt"
	"slices"
	"time"
)

// Policy selects the tracks that publishers are asked for.
type Policy string

// The policies.
const (
	// Warm asks for all tracks.
	Warm Policy = "warm"
	// Neighbours asks for the tracks that a receiver takes and for one quality on each side of them. Neighbours also
	// asks for other tracks until they have been unused for Config.Hold.
	Neighbours Policy = "neighbours"
	// Strict asks for the tracks that a receiver takes.
	Strict Policy = "strict"
)

// Config configures uplink suppression.
type Config struct {
	Policy Policy `yaml:"policy" help:"wanted tracks: warm (all), neighbours (used ± one quality), strict (used)"`
	// Hold is the time before an unused track is suppressed under the policy neighbours.
	Hold time.Duration `yaml:"-"`
}

// DefaultConfig returns the default configuration.
func DefaultConfig() Config {
	return Config{
		Policy: Neighbours,
		// A receiver that looks away and back within two seconds finds the same quality. Sending a quality for two more
		// seconds costs less than starting an encoder at each glance.
		Hold: 2 * time.Second,
	}
}

// Validate returns an error for the first wrong key. The error begins with the key.
func (c Config) Validate() error {
	if !slices.Contains([]Policy{Warm, Neighbours, Strict}, c.Policy) {
		return fmt.Errorf("policy is %q: expected %s, %s or %s", c.Policy, Warm, Neighbours, Strict)
	}
	if c.Hold < 0 {
		return fmt.Errorf("hold is %v: expected 0 or more", c.Hold)
	}
	return nil
}
