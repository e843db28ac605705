package realsense

import (
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/realsense/rs2"
)

// stream is a device with running sensors. The stream turns frames of depth and colour into pictures. Only one
// goroutine may use a stream.
type stream struct {
	library *rs2.Library
	sensors []*rs2.Sensor
	started []*rs2.Sensor
	queue   *rs2.Queue
	sync    *rs2.Block
	steps   []*rs2.Block // processing of an image set: filters, then the alignment
	closers []func()     // in the order of opening

	camera depth.Camera // the colour camera, named by the device's serial number
	fps    int
	last   uint64 // number of the depth image returned last
	any    bool   // whether one was returned
}

// queued is the maximum number of waiting images: two instants of both kinds. Older images of a
// camera are dropped.
const queued = 4

// startStream starts the streams of a device. If there is a file, its frames are recorded. The
// stream owns the device afterwards.
func startStream(l *rs2.Library, device *rs2.Device, record string, w wanted, filters Filters) (*stream, error) {
	s := &stream{library: l, closers: []func(){device.Close}}
	if err := s.start(device, record, w, filters); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *stream) start(device *rs2.Device, record string, w wanted, filters Filters) error {
	unit, err := depthUnit(device)
	if err != nil {
		return err
	}
	name := device.Info(rs2.SerialNumber)
	if record != "" {
		if device, err = device.Record(record); err != nil {
			return err
		}
		s.closers = append(s.closers, device.Close)
	}
	if s.sensors, err = device.Sensors(); err != nil {
		return err
	}
	chosen, err := s.describe(name, unit, w)
	if err != nil {
		return err
	}
	if err := s.build(filters); err != nil {
		return err
	}
	for i, profiles := range chosen {
		if len(profiles) > 0 {
			if err := s.sensors[i].Start(profiles, s.queue); err != nil {
				return err
			}
			s.started = append(s.started, s.sensors[i])
		}
	}
	return nil
}

// depthUnit reads the length of a unit of depth from a device's sensors. A recording device does
// not report it.
func depthUnit(device *rs2.Device) (float64, error) {
	sensors, err := device.Sensors()
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, sensor := range sensors {
		defer sensor.Close()
		unit, err := sensor.DepthUnit()
		if err == nil && unit > 0 {
			return unit, nil
		}
		errs = append(errs, err)
	}
	return 0, fmt.Errorf("%w: no sensor reports the unit of depth: %w", ErrStreams, errors.Join(errs...))
}

// describe selects the profiles of each sensor and sets the camera.
func (s *stream) describe(name string, unit float64, w wanted) ([][]rs2.Profile, error) {
	var all []rs2.Profile
	owners := make(map[rs2.Profile]int)
	for i, sensor := range s.sensors {
		profiles, err := sensor.Profiles()
		if err != nil {
			return nil, err
		}
		for _, p := range profiles {
			all = append(all, p)
			owners[p] = i
		}
	}
	depthProfile, color, err := choose(all, w)
	if err != nil {
		return nil, err
	}
	lens, err := s.library.Intrinsics(color)
	if err != nil {
		return nil, err
	}
	if s.camera, err = cameraOf(name, lens, unit); err != nil {
		return nil, err
	}
	s.fps = depthProfile.FPS
	chosen := make([][]rs2.Profile, len(s.sensors))
	for _, p := range []rs2.Profile{depthProfile, color} {
		chosen[owners[p]] = append(chosen[owners[p]], p)
	}
	return chosen, nil
}

// build makes the queue and the blocks.
func (s *stream) build(filters Filters) error {
	var err error
	if s.queue, err = s.library.NewQueue(queued); err != nil {
		return err
	}
	s.closers = append(s.closers, s.queue.Close)
	if s.sync, err = s.library.NewSync(); err != nil {
		return err
	}
	s.closers = append(s.closers, s.sync.Close)
	// The noise of stereo cameras is uniform in disparity, not in depth. Both conversions leave
	// images of other cameras unchanged.
	disparity := filters.Spatial.On || filters.Temporal.On
	steps := []struct {
		on       bool
		settings []Setting
		make     func() (*rs2.Block, error)
	}{
		{filters.Decimation.On, filters.Decimation.Settings, s.library.NewDecimation},
		{disparity, nil, func() (*rs2.Block, error) { return s.library.NewDisparity(true) }},
		{filters.Spatial.On, filters.Spatial.Settings, s.library.NewSpatial},
		{filters.Temporal.On, filters.Temporal.Settings, s.library.NewTemporal},
		{disparity, nil, func() (*rs2.Block, error) { return s.library.NewDisparity(false) }},
		{filters.Holes.On, filters.Holes.Settings, s.library.NewHoleFilling},
		{true, nil, func() (*rs2.Block, error) { return s.library.NewAlign(rs2.Color) }},
	}
	for _, step := range steps {
		if !step.on {
			continue
		}
		block, err := step.make()
		if err != nil {
			return err
		}
		s.steps = append(s.steps, block)
		s.closers = append(s.closers, block.Close)
		for _, setting := range step.settings {
			if err := block.Set(setting.Option, setting.Value); err != nil {
				return err
			}
		}
	}
	return nil
}

// next replaces a picture by the next one, or returns false if no picture arrived in time.
func (s *stream) next(patience time.Duration, into *picture) (bool, error) {
	deadline := time.Now().Add(patience)
	for {
		set, err := s.sync.Result()
		if err != nil {
			return false, err
		}
		if set.Valid() {
			if done, err := s.develop(set, into); done || err != nil {
				return done, err
			}
			continue
		}
		frame, err := s.queue.Wait(max(time.Until(deadline), 0))
		if err != nil || !frame.Valid() {
			return false, err
		}
		if err := s.sync.Process(frame); err != nil {
			return false, err
		}
	}
}

// develop makes a picture from a set of images, or returns false if depth or colour is missing or
// the set has nothing new.
func (s *stream) develop(set rs2.Frame, into *picture) (bool, error) {
	for _, step := range s.steps {
		if whole, err := hasBoth(set); !whole || err != nil {
			set.Release()
			return false, err
		}
		if err := step.Process(set); err != nil {
			return false, err
		}
		var err error
		if set, err = step.Result(); err != nil || !set.Valid() {
			return false, err
		}
	}
	defer set.Release()
	n, err := set.Len()
	if err != nil {
		return false, err
	}
	for i := range n {
		if err := s.take(set, i, into); err != nil {
			return false, err
		}
	}
	fresh := !s.any || into.number != s.last
	s.any, s.last = true, into.number
	return fresh, nil
}

// hasBoth reports whether a frame is a set of depth and colour. The synchroniser passes single
// images if their partner is lost.
func hasBoth(set rs2.Frame) (bool, error) {
	n, err := set.Len()
	if err != nil || n < 2 {
		return false, err
	}
	var found [2]bool
	for i := range n {
		image, err := set.At(i)
		if err != nil {
			return false, err
		}
		profile, err := image.Profile()
		image.Release()
		if err != nil {
			return false, err
		}
		found[0] = found[0] || profile.Stream == rs2.Depth
		found[1] = found[1] || profile.Stream == rs2.Color
	}
	return found[0] && found[1], nil
}

// take copies one image of a set.
func (s *stream) take(set rs2.Frame, index int, into *picture) error {
	image, err := set.At(index)
	if err != nil {
		return err
	}
	defer image.Release()
	profile, err := image.Profile()
	if err != nil {
		return err
	}
	pixels, err := image.Picture()
	switch {
	case err != nil:
		return err
	case profile.Stream == rs2.Color:
		return into.copyColor(pixels, profile.Format, s.camera.Width, s.camera.Height)
	}
	if into.stamp, into.domain, err = image.Timestamp(); err != nil {
		return err
	}
	if into.number, err = image.Number(); err != nil {
		return err
	}
	return into.copyDepth(pixels, s.camera.Width, s.camera.Height)
}

// close stops the sensors and frees everything. Stopping a camera that was unplugged fails, which
// is ignored.
func (s *stream) close() {
	for _, sensor := range s.started {
		_ = sensor.Stop()
	}
	for _, sensor := range s.sensors {
		sensor.Close()
	}
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
}
