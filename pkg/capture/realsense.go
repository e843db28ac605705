package capture

import (
	"context"
	"fmt"
	"math"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/realsense"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// takeSource is a sequence of images from RealSense cameras or from a recording.
type takeSource interface {
	Cameras() []depth.Camera
	FrameRate() float64
	Description() string
	Read(ctx context.Context, take *realsense.Take) error
	Close() error
}

// realSense is a Source that converts the images of takes to points.
type realSense struct {
	takes      takeSource
	info       Info
	options    Options
	projection *projection
	take       realsense.Take
	shot       shot
	closed     bool
}

// openRealSense captures with the connected cameras, or plays a recording if there is an argument.
func openRealSense(clock Clock, path string, options Options) (Source, error) {
	config := options.RealSense
	if options.Calibration != "" {
		var err error
		if config.Calibration, err = depth.ReadCalibration(options.Calibration); err != nil {
			return nil, err
		}
	}
	var from takeSource
	var err error
	if path != "" {
		from, err = realsense.OpenRecording(path, options.FPS, clock, config)
	} else {
		if options.FPS != 0 {
			config.FPS = int(options.FPS)
		}
		if float64(config.FPS) != options.FPS && options.FPS != 0 {
			return nil, fmt.Errorf("%w: fps is %g, expected a whole number, as cameras have", ErrOptions, options.FPS)
		}
		from, err = realsense.OpenCameras(config)
	}
	if err != nil {
		return nil, err
	}
	s, err := newRealSense(from, options)
	if err != nil {
		_ = from.Close()
		return nil, err
	}
	return s, nil
}

// farthest is the default range of a camera. Beyond it the error of stereo cameras exceeds 2 cm,
// and a larger range enlarges the box in which points are quantized.
const farthest = 3.0 // metres

func newRealSense(from takeSource, options Options) (*realSense, error) {
	if options.Background.Far == 0 {
		options.Background.Far = max(farthest, 2*options.Background.Near)
	}
	cameras := from.Cameras()
	s := &realSense{takes: from, options: options, info: Info{
		Description: from.Description(),
		FrameRate:   from.FrameRate(),
		Box:         reachOf(cameras, options.Background),
		Cameras:     cameras,
	}}
	for _, camera := range cameras {
		s.info.Points += camera.Width * camera.Height
	}
	var err error
	s.projection, err = newProjection(cameras, options, 0, func(int) depth.Background { return options.Background })
	if err != nil {
		return nil, err
	}
	if options.Points > 0 {
		s.info.Points = min(s.info.Points, options.Points)
	}
	return s, nil
}

// Info implements Source. Points is the number of pixels of the cameras, because the number of
// points is not known.
func (s *realSense) Info() Info { return s.info }

// Read implements Source. If the background is learnt, the first Read consumes the takes required
// for learning.
func (s *realSense) Read(ctx context.Context, frame *Frame) error {
	if s.closed {
		return ErrClosed
	}
	// The shot uses the memory of the frame.
	s.shot = shot{cloud: frame.Cloud, images: frame.Images, rasters: frame.Rasters}
	for learning := true; learning; {
		if err := s.takes.Read(ctx, &s.take); err != nil {
			return err
		}
		frame.Capture, frame.Number, frame.Skipped = s.take.Capture, s.take.Number, s.take.Skipped
		learning = s.projection.learning()
		if err := s.projection.project(s.take.Images, &s.shot); err != nil {
			return err
		}
	}
	frame.Cloud, frame.Images, frame.Rasters = s.shot.cloud, s.shot.images, s.shot.rasters
	scatter(&frame.Cloud, s.options.Points, s.options.Seed, int(frame.Number))
	return nil
}

// Close implements Source.
func (s *realSense) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	return s.takes.Close()
}

// reachOf returns the box around everything that the cameras can see of the object. A pixel's
// points lie on its ray, and all rays lie between the rays of the border pixels. The corners are
// therefore the ends of the border rays and the positions of the cameras.
func reachOf(cameras []depth.Camera, background depth.Background) volumetric.BoundingBox {
	box := volumetric.BoundingBox{
		Min: [3]float32{math.MaxFloat32, math.MaxFloat32, math.MaxFloat32},
		Max: [3]float32{-math.MaxFloat32, -math.MaxFloat32, -math.MaxFloat32},
	}
	for _, c := range cameras {
		for v := range c.Height {
			for u := range c.Width {
				if u > 0 && u < c.Width-1 && v > 0 && v < c.Height-1 {
					continue
				}
				x, y, ok := c.Deproject(float64(u), float64(v))
				if !ok {
					continue
				}
				for _, d := range []float64{background.Near, background.Far} {
					include(&box, c.Pose.Apply([3]float64{x * d, -y * d, -d}))
				}
			}
		}
	}
	return limited(box, background.Box)
}

// limited returns the part of a box within a limit, the limit if there is none, or the whole box if the limit is zero.
func limited(box, limit volumetric.BoundingBox) volumetric.BoundingBox {
	if limit == (volumetric.BoundingBox{}) {
		return box
	}
	for axis := range 3 {
		box.Min[axis], box.Max[axis] = max(box.Min[axis], limit.Min[axis]), min(box.Max[axis], limit.Max[axis])
		if box.Min[axis] >= box.Max[axis] { // the cameras do not see the object's box
			return limit
		}
	}
	return box
}

// include extends a box by a point and the rounding error of its coordinates, which is below a
// millimetre within 10 km.
func include(box *volumetric.BoundingBox, point [3]float64) {
	const rounding = 1e-3
	for axis, at := range point {
		box.Min[axis] = min(box.Min[axis], float32(at-rounding))
		box.Max[axis] = max(box.Max[axis], float32(at+rounding))
	}
}
