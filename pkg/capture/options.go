package capture

import (
	"fmt"
	"math"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/realsense"
	"github.com/volsfu/volsfu/pkg/capture/synthetic"
)

// MaxFPS is the highest frame rate: a publication's description admits no more.
const MaxFPS = 1000

// Options say how a source is played. What a source has no use for, it ignores.
type Options struct {
	FPS         float64 `yaml:"fps" help:"frames per second; 0 takes the source's own rate"`
	Points      int     `yaml:"points" help:"points per frame; larger frames of files are sampled down evenly; 0 takes all (synthetic: 40000)"`
	Seed        int     `yaml:"seed" help:"what is random about the source: order of points, looks and motion of the synthetic figure"`
	MemoryLimit int     `yaml:"memory_limit" help:"bytes of decoded frames that a source of files keeps in memory; the rest is read ahead while playing"`
	// Background says what of depth images is not the object. An rgbd recording's own near_m and far_m hold where it has no range.
	Background depth.Background `yaml:"-"`
	// Calibration is a file that says where cameras stand, see depth.ParseCalibration; without, every camera stands at the origin.
	Calibration string `yaml:"calibration" help:"rgbd, kinect, realsense: file that says where cameras stand, in YAML or JSON"`
	// RealSense says which cameras capture, and how. The rate is FPS where that is not 0, and the calibration that of Calibration.
	RealSense realsense.Config `yaml:"-"`
	// Images asks for Frame.Images.
	Images bool `yaml:"images" help:"hand out depth images beside the points made of them"`
}

// DefaultOptions play a source as it is. 512 MiB hold 36 million points of 15 bytes: 500 frames of a depth camera's 70,000.
func DefaultOptions() Options {
	return Options{MemoryLimit: 512 << 20, RealSense: realsense.DefaultConfig()}
}

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
