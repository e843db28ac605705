package realsense

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/realsense/rs2"
)

// Take is the set of images of all cameras at one instant.
type Take struct {
	// Capture is the capture time. For images of different times, it is the time of the oldest new
	// image.
	Capture time.Time
	// Number counts frame intervals since the first take; Skipped is the number of intervals
	// without a take since the previous one.
	Number, Skipped int64
	// Images are by camera. An image without Depth means that the camera delivered no image. Images
	// are valid until the next Read.
	Images []depth.Image
}

// Cameras captures from connected cameras. Only one goroutine may use a Cameras.
type Cameras struct {
	cameras   []depth.Camera
	fps       int
	devices   devices
	mailbox   *mailbox
	gathering *gathering
	pictures  []*picture
	shown     []bool
	counter   counter
	timer     *time.Timer // wakes the reader if no image does
	stop      context.CancelFunc
	running   sync.WaitGroup
	closed    bool
}

// OpenCameras starts the cameras.
//
// Errors wrap rs2.ErrUnavailable, rs2.ErrVersion, rs2.ErrCall, ErrConfig, ErrNoCamera, ErrStreams
// or depth.ErrCalibration.
func OpenCameras(config Config) (*Cameras, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	library, err := rs2.Load(config.Library)
	if err != nil {
		return nil, err
	}
	plug, err := library.NewContext()
	if err != nil {
		return nil, err
	}
	return openCameras(library, plug, config, defaultTimeouts)
}

// openCameras is OpenCameras for cameras of any origin. The Cameras own the plug afterwards.
func openCameras(library *rs2.Library, plug devices, config Config, patience timeouts) (*Cameras, error) {
	c := &Cameras{devices: plug, fps: config.FPS, timer: time.NewTimer(math.MaxInt64), stop: func() {}}
	var err error
	if config.Serials, err = selectSerials(plug, config.Serials); err != nil {
		_ = c.Close()
		return nil, err
	}
	c.mailbox = newMailbox(len(config.Serials))
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	finding := new(sync.Mutex)
	for i, serial := range config.Serials {
		one := &camera{
			index:    i,
			config:   config,
			library:  library,
			devices:  plug,
			timeouts: patience,
			mailbox:  c.mailbox,
			finding:  finding,
		}
		stream, err := one.find(serial)
		if err != nil {
			_ = c.Close()
			return nil, err
		}
		one.camera = stream.camera
		if one.camera.Pose, err = config.Calibration.Pose(serial); err != nil {
			stream.close()
			_ = c.Close()
			return nil, err
		}
		c.cameras = append(c.cameras, one.camera)
		c.pictures = append(c.pictures, new(picture))
		c.running.Go(func() { one.run(ctx, stream) })
	}
	interval := time.Second / time.Duration(config.FPS)
	c.gathering = newGathering(len(c.cameras), interval)
	c.counter.interval = interval
	c.shown = make([]bool, len(c.cameras))
	return c, nil
}

// selectSerials checks that the wanted cameras are connected, or selects all.
func selectSerials(plug devices, want []string) ([]string, error) {
	devices, err := plug.Devices()
	if err != nil {
		return nil, err
	}
	var there []string
	for _, device := range devices {
		there = append(there, device.Info(rs2.SerialNumber))
		device.Close()
	}
	slices.Sort(there)
	switch {
	case len(there) == 0:
		return nil, fmt.Errorf("%w is plugged in", ErrNoCamera)
	case len(want) == 0 && len(there) > depth.MaxCameras:
		return nil, fmt.Errorf(
			"%w: %d cameras are plugged in, expected at most %d",
			ErrConfig,
			len(there),
			depth.MaxCameras,
		)
	case len(want) == 0:
		return there, nil
	}
	for _, serial := range want {
		if !slices.Contains(there, serial) {
			return nil, fmt.Errorf(
				"%w with serial number %s: there is %s",
				ErrNoCamera,
				serial,
				strings.Join(there, ", "),
			)
		}
	}
	return want, nil
}

// Cameras returns the cameras in the order of the bits in pointcloud.Cloud.Sources. The names are
// serial numbers.
func (c *Cameras) Cameras() []depth.Camera { return c.cameras }

// FrameRate returns the frame rate in frames per second.
func (c *Cameras) FrameRate() float64 { return float64(c.fps) }

// Description returns a human-readable description.
func (c *Cameras) Description() string {
	var names []string
	for _, camera := range c.cameras {
		names = append(names, camera.Name)
	}
	return fmt.Sprintf(
		"RealSense %s, %dx%d at %d fps",
		strings.Join(names, ", "),
		c.cameras[0].Width,
		c.cameras[0].Height,
		c.fps,
	)
}

// Read replaces a take by the next one. If the context ends first, Read returns the error of the
// context. While no camera is connected, Read waits.
func (c *Cameras) Read(ctx context.Context, take *Take) error {
	if c.closed {
		return ErrClosed
	}
	for {
		c.collect()
		ready, again := c.gathering.ready(time.Now())
		if ready {
			c.fill(take)
			return nil
		}
		if !again.IsZero() {
			c.timer.Reset(time.Until(again))
		}
		select {
		case <-c.mailbox.wake:
		case <-c.timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// collect reads all changes from the mailbox.
func (c *Cameras) collect() {
	for i := range c.pictures {
		var news update
		news, c.pictures[i] = c.mailbox.exchange(i, c.pictures[i])
		if news.present {
			c.gathering.found(i)
		} else {
			c.gathering.lost(i)
		}
		if news.fresh {
			c.gathering.arrived(i, news.capture, news.arrival)
		}
	}
}

func (c *Cameras) fill(take *Take) {
	take.Capture = c.gathering.compose(c.shown)
	take.Number, take.Skipped = c.counter.number(take.Capture)
	take.Images = take.Images[:0]
	for i, shown := range c.shown {
		var image depth.Image
		if shown {
			image = c.pictures[i].image
		}
		take.Images = append(take.Images, image)
	}
}

// Close stops the cameras and completes the recordings.
func (c *Cameras) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	c.stop()
	c.running.Wait()
	c.timer.Stop()
	c.devices.Close()
	return nil
}

// counter numbers takes by the frame intervals between takes.
type counter struct {
	interval time.Duration
	first    time.Time
	last     int64
}

func (c *counter) number(capture time.Time) (number, skipped int64) {
	if c.first.IsZero() {
		c.first = capture
		return 0, 0
	}
	// Times jitter: a frame that arrives early still has the next number.
	number = max(c.last+1, int64(math.Round(float64(capture.Sub(c.first))/float64(c.interval))))
	skipped = number - c.last - 1
	c.last = number
	return number, skipped
}
