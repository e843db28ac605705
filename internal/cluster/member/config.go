package member

import (
	"errors"
	"fmt"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/fabric"
	"github.com/volsfu/volsfu/internal/trunk"
)

// Config configures a node of a cluster. The names of the node, the cluster and the region are in the certificate.
type Config struct {
	URL       string `yaml:"url" flag:"cluster" secret:"true" help:"NATS: embedded://SEED:6222,… or nats://HOST:4222,…"`
	Port      int    `yaml:"port" flag:"cluster-port" help:"UDP port for media of other nodes"`
	Directory string `yaml:"directory" flag:"cluster-directory" help:"directory made by volsfu cluster certificate"`
	Fanout    int    `yaml:"fanout" flag:"cluster-fanout" help:"copies of a publication that a node sends to others"`
	// Limits are the limits of the estimate of one lane of a trunk. Zero values select those of trunk.DefaultLimits.
	Limits congestion.Limits `yaml:"-"`
}

// DefaultConfig returns the configuration of a server that runs alone.
func DefaultConfig() Config { return Config{Port: 7883, Fanout: trunk.DefaultFanout} }

// ErrConfig is wrapped with the key and the expected value.
var ErrConfig = errors.New("invalid cluster")

// Validate reports the first invalid key. Validate does not read the files.
func (c Config) Validate() error {
	if c.Port < 0 || c.Port > 65535 {
		return fmt.Errorf("%w: port is %d, expected 0 to 65535; with 0 the system chooses", ErrConfig, c.Port)
	}
	if c.Fanout < 1 || c.Fanout > trunk.MaxFanout {
		return fmt.Errorf("%w: fanout is %d, expected 1 to %d", ErrConfig, c.Fanout, trunk.MaxFanout)
	}
	if c.URL == "" {
		return nil
	}
	if _, err := fabric.Parse(c.URL); err != nil {
		return fmt.Errorf("url: %w", err)
	}
	if c.Directory == "" {
		return fmt.Errorf("%w: directory is empty, expected the directory of this node's certificates: "+
			"volsfu cluster certificate makes them", ErrConfig)
	}
	return nil
}
