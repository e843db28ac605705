package capture

import (
	"fmt"
	"math"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/realsense"
	"github.com/volsfu/volsfu/pkg/capture/synthetic"
)

// MaxFPS is the maximum frame rate, which is also the limit in a publication's description.
const MaxFPS = 1000

// Options determine how a source is played. A source ignores options that it does not use.
type Options struct {
	FPS         float64 `yaml:"fps" help:"frames per second; 0 means the rate of the source"`
	Points      int     `yaml:"points" help:"maximum points per frame, sampled evenly; 0: all (synthetic: 40000)"`
	Seed        int     `yaml:"seed" help:"seed of the order of points, and of the synthetic looks and motion"`
	MemoryLimit int     `yaml:"memory_limit" help:"bytes of decoded frames kept in memory; other frames are read ahead"`
	// Background specifies the parts of depth images that are not the object. If the background has
	// no range, an rgbd recording's own near_m and far_m apply.
	Background depth.Background `yaml:"-"`
	// Calibration is a file with the poses of cameras (see depth.ParseCalibration). Without it
	// every camera is at the origin.
	Calibration string `yaml:"calibration" help:"rgbd, kinect, realsense: YAML or JSON file with the poses of cameras"`
	// VirtualCameras is a file of virtual depth cameras (see virtual.ParseRig) that see the source, which is synthetic
	// or glb. The source then has the cameras' points and images.
	VirtualCameras string `yaml:"virtual_cameras" help:"synthetic, glb: YAML or JSON file of virtual depth cameras"`
	// Prune drops pixels that another camera sees better (see depth.Pruner).
	Prune bool `yaml:"prune" help:"drop pixels of depth cameras that another camera sees more frontally"`
	// RealSense configures the RealSense cameras. The rate is replaced by FPS unless FPS is 0, and its calibration by
	// Calibration if set.
	RealSense realsense.Config `yaml:"-"`
	// Images requests Frame.Images.
	Images bool `yaml:"images" help:"return depth images with the points"`
	// Rasters requests Frame.Rasters.
	Rasters bool `yaml:"rasters" help:"return depth images without the pixels that are not points"`
}

// DefaultOptions plays a source unchanged. 512 MiB hold 36 million points of 15 bytes: 500 frames
// of a depth camera's 70,000.
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
	case o.VirtualCameras != "" && o.Calibration != "":
		return fmt.Errorf("%w: virtual cameras have poses in their own file, expected no calibration", ErrOptions)
	}
	return nil
}

// rate returns the frame rate of playback, given the source's own rate.
func (o Options) rate(own float64) float64 {
	if o.FPS > 0 {
		return o.FPS
	}
	return own
}
