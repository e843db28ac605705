package capture

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/kinect"
	"github.com/volsfu/volsfu/pkg/capture/rgbd"
)

// recording is the recording of one camera in files. Several goroutines load images concurrently.
type recording interface {
	Camera() depth.Camera
	// Description is text for people, for example "48 RGB-D frames of 512x424 from
	// recordings/desk".
	Description() string
	Len() int
	// FrameRate returns the frame rate in frames per second.
	FrameRate() float64
	// Time returns the capture time of a frame. The times of two recordings have a common origin if
	// both are Synchronized; otherwise the origin is arbitrary.
	Time(index int) time.Duration
	Synchronized() bool
	// LoadImage replaces an image by the image of one frame. The error names the file.
	LoadImage(index int, into *depth.Image) error
	Close() error
}

// rig is footage from several cameras that recorded the same scene. Each load has its own
// workspace.
type rig struct {
	recordings []recording
	cameras    []depth.Camera
	// frames contains, for each frame of the rig, the frame indices of the recordings.
	frames     [][]int
	projection *projection
	workspaces sync.Pool
}

// workspace is the memory of one load.
type workspace struct {
	images     []depth.Image
	projection *projection
}

// openRig opens the recordings of a specification's parts.
func openRig(clock Clock, parts []part, options Options) (Source, error) {
	if len(parts) > depth.MaxCameras {
		return nil, fmt.Errorf("%w: %d cameras, expected at most %d", ErrArgument, len(parts), depth.MaxCameras)
	}
	var recordings []recording
	var descriptions []string
	for _, p := range parts {
		opened, err := p.kind.camera(p.cameraName(), p.argument)
		if err != nil {
			return nil, errors.Join(err, closeAll(recordings))
		}
		recordings, descriptions = append(recordings, opened), append(descriptions, opened.Description())
	}
	r, err := newRig(recordings, options)
	if err != nil {
		return nil, errors.Join(err, closeAll(recordings))
	}
	return openClip(clock, r, Info{
		Description: strings.Join(descriptions, ", "),
		FrameRate:   options.rate(recordings[0].FrameRate()),
		Cameras:     r.cameras,
	}, options)
}

func closeAll(recordings []recording) error {
	var errs []error
	for _, recording := range recordings {
		errs = append(errs, recording.Close())
	}
	return errors.Join(errs...)
}

// newRig returns a rig of the recordings. On error the caller keeps the ownership of the
// recordings.
func newRig(recordings []recording, options Options) (*rig, error) {
	r := &rig{recordings: recordings}
	if err := r.setCameras(options); err != nil {
		return nil, err
	}
	var err error
	// Frames are loaded in parallel already.
	r.projection, err = newProjection(r.cameras, options, 1, func(camera int) depth.Background {
		background := options.Background
		if folder, ok := recordings[camera].(rgbdRecording); ok && background.Near == 0 && background.Far == 0 {
			background.Near, background.Far = folder.Intrinsics().Near, folder.Intrinsics().Far
		}
		return background
	})
	if err != nil {
		return nil, err
	}
	if err := r.learn(); err != nil {
		return nil, err
	}
	r.workspaces.New = func() any {
		return &workspace{images: make([]depth.Image, len(r.cameras)), projection: r.projection.clone()}
	}
	return r, r.align()
}

// setCameras sets the cameras with their poses.
func (r *rig) setCameras(options Options) error {
	var calibration depth.Calibration
	if options.Calibration != "" {
		var err error
		if calibration, err = depth.ReadCalibration(options.Calibration); err != nil {
			return err
		}
	}
	for _, recording := range r.recordings {
		camera := recording.Camera()
		for _, other := range r.cameras {
			if other.Name == camera.Name {
				return fmt.Errorf(
					"%w: two cameras have the name %q; set names with NAME= before the kind",
					ErrArgument,
					camera.Name,
				)
			}
		}
		if options.Calibration != "" {
			var err error
			if camera.Pose, err = calibration.Pose(camera.Name); err != nil {
				return err
			}
		}
		r.cameras = append(r.cameras, camera)
	}
	return nil
}

// learn has each projector with a static background learn it from the first frames, which are repeated if there are
// too few.
func (r *rig) learn() error {
	var s shot
	var m depth.Image
	for camera, p := range r.projection.projectors {
		from := r.recordings[camera]
		for i := 0; p.Learning() && i < depth.LearnImages*from.Len(); i++ {
			if err := from.LoadImage(i%from.Len(), &m); err != nil {
				return fmt.Errorf("camera %q: %w", r.cameras[camera].Name, err)
			}
			if len(m.Depth) == 0 {
				continue
			}
			if err := p.Project(&m, &s.cloud); err != nil {
				return fmt.Errorf("camera %q: %w", r.cameras[camera].Name, err)
			}
		}
	}
	return nil
}

// align finds for each frame of the first camera the frames of the other cameras with the same
// time, within half a frame interval.
func (r *rig) align() error {
	first := r.recordings[0]
	half := time.Duration(float64(time.Second) / first.FrameRate() / 2)
	for i, other := range r.recordings[1:] {
		if math.Abs(other.FrameRate()/first.FrameRate()-1) > 0.01 {
			return fmt.Errorf("%w: camera %q has %g frames per second, expected %g as the first has",
				ErrArgument, r.cameras[i+1].Name, other.FrameRate(), first.FrameRate())
		}
	}
	next := make([]int, len(r.recordings))
	for index := range first.Len() {
		frames := []int{index}
		for i, other := range r.recordings[1:] {
			at := when(first, other, index)
			for next[i] < other.Len() && other.Time(next[i])-origin(first, other) < at-half {
				next[i]++
			}
			if next[i] == other.Len() || other.Time(next[i])-origin(first, other) > at+half {
				break
			}
			frames = append(frames, next[i])
		}
		if len(frames) == len(r.recordings) {
			r.frames = append(r.frames, frames)
		}
	}
	if len(r.frames) == 0 {
		return fmt.Errorf("%w: the cameras have no two frames of the same time", ErrArgument)
	}
	return nil
}

// when returns the time of a frame of the first recording in a comparison with another recording.
func when(first, other recording, index int) time.Duration {
	if first.Synchronized() && other.Synchronized() {
		return first.Time(index)
	}
	return first.Time(index) - first.Time(0)
}

// origin returns the time to subtract from the times of the other recording.
func origin(first, other recording) time.Duration {
	if first.Synchronized() && other.Synchronized() {
		return 0
	}
	return other.Time(0)
}

// Len implements footage.
func (r *rig) Len() int { return len(r.frames) }

// Load implements footage.
func (r *rig) Load(index int, into *shot) error {
	w := r.workspaces.Get().(*workspace)
	defer r.workspaces.Put(w)
	for i, recording := range r.recordings {
		if err := recording.LoadImage(r.frames[index][i], &w.images[i]); err != nil {
			return err
		}
	}
	if err := w.projection.project(w.images, into); err != nil {
		return fmt.Errorf("frame %d: %w", r.frames[index][0], err)
	}
	return nil
}

// Close implements footage.
func (r *rig) Close() error { return closeAll(r.recordings) }

func openKinect(name, path string) (recording, error) { return kinect.Open(name, path) }

// rgbdRecording is a folder of RGB-D frames as a recording.
type rgbdRecording struct {
	*rgbd.Folder
	dir    string
	camera depth.Camera
}

func openRGBD(name, dir string) (recording, error) {
	folder, err := rgbd.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	camera, err := folder.Intrinsics().Camera(name)
	if err != nil {
		return nil, err
	}
	return rgbdRecording{folder, dir, camera}, nil
}

// Camera implements recording.
func (f rgbdRecording) Camera() depth.Camera { return f.camera }

// Description implements recording.
func (f rgbdRecording) Description() string {
	return fmt.Sprintf("%d RGB-D frames of %dx%d from %s", f.Len(), f.camera.Width, f.camera.Height, f.dir)
}

// FrameRate implements recording.
func (f rgbdRecording) FrameRate() float64 {
	if own := f.Intrinsics().FPS; own > 0 {
		return own
	}
	return defaultFPS
}

// Time implements recording.
func (f rgbdRecording) Time(index int) time.Duration {
	return dueAfter(int64(index), f.FrameRate())
}

// Synchronized implements recording. The files contain no capture times.
func (f rgbdRecording) Synchronized() bool { return false }

// Close implements recording. No file stays open.
func (f rgbdRecording) Close() error { return nil }
