package capture

import (
	"fmt"
	"math"

	"github.com/volsfu/volsfu/pkg/capture/rgbd"
	"github.com/volsfu/volsfu/pkg/capture/synthetic"
)

// MaxFPS is the highest frame rate: a publication's description admits no more.
const MaxFPS = 1000

// Options say how a source is played. What a source has no use for, it ignores.
type Options struct {
	FPS         float64 `yaml:"fps" help:"frames per second; 0 takes the source's own rate"`
	Points      int     `yaml:"points" help:"points per frame; larger frames of files are sampled down evenly; 0 takes all (synthetic: 40000)"`
	Seed        int     `yaml:"seed" help:"what is random about the source: order of points, looks and motion of the synthetic figure"`
	Near        float64 `yaml:"near" help:"rgbd: nearest depth kept, in metres; 0 takes near_m of intrinsics.json"`
	Far         float64 `yaml:"far" help:"rgbd: farthest depth kept, in metres; 0 takes far_m of intrinsics.json"`
	MemoryLimit int     `yaml:"memory_limit" help:"bytes of decoded frames that a source of files keeps in memory; the rest is read ahead while playing"`
}

// DefaultOptions play a source as it is. 512 MiB hold 36 million points of 15 bytes: 500 frames of a depth camera's 70,000.
func DefaultOptions() Options { return Options{MemoryLimit: 512 << 20} }

func (o Options) validate() error {
	switch {
	case math.IsNaN(o.FPS) || o.FPS < 0 || o.FPS > MaxFPS:
		return fmt.Errorf("%w: fps is %g, expected 0 to %d", ErrOptions, o.FPS, MaxFPS)
	case o.Points < 0 || o.Points > synthetic.MaxPoints:
		return fmt.Errorf("%w: points is %d, expected 0 to %d", ErrOptions, o.Points, synthetic.MaxPoints)
	case o.MemoryLimit < 0:
		return fmt.Errorf("%w: memory limit is %d bytes, expected 0 or more", ErrOptions, o.MemoryLimit)
	}
	return nil
}

// rate is the frame rate to play at, given the source's own.
func (o Options) rate(own float64) float64 {
	if o.FPS > 0 {
		return o.FPS
	}
	return own
}

// depth is the part of the options that the rgbd package knows.
func (o Options) depth() rgbd.Config {
	cfg := rgbd.DefaultConfig()
	cfg.Near, cfg.Far = o.Near, o.Far
	return cfg
}
