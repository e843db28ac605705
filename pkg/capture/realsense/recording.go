package realsense

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/realsense/rs2"
)

// Clock is the clock for playback.
type Clock interface {
	Now() time.Time
	// Wait returns nil once the clock has reached the time, or the context's error if the context
	// ends first.
	Wait(ctx context.Context, until time.Time) error
}

// Recording plays files recorded from cameras repeatedly, as if the cameras captured now. Only one
// goroutine may use a Recording.
type Recording struct {
	path    string
	clock   Clock
	cameras []depth.Camera
	readers []*recordingReader
	heads   []*picture // the next picture of each file, nil if not yet read
	shown   []*picture // the pictures of the latest take
	fps     float64
	pace    float64 // playback speed relative to the recorded one
	origins []float64
	times   timetable
	closed  bool
}

// OpenRecording opens a recording, or all recordings in a folder, which must be from cameras that
// captured together. A non-zero fps replaces the frame rate of the recording. Of the configuration,
// Library, Filters, Calibration and Serials are used. If there are serial numbers, recordings of
// other cameras are skipped.
//
// Errors wrap rs2.ErrUnavailable, rs2.ErrVersion, ErrConfig, ErrRecording or depth.ErrCalibration.
func OpenRecording(path string, fps float64, clock Clock, config Config) (*Recording, error) {
	// If the library is missing or unusable, this error is clearer than the error of the player
	// process.
	if _, err := rs2.Load(config.Library); err != nil {
		return nil, err
	}
	files, err := recordingFiles(path)
	if err != nil {
		return nil, err
	}
	r := &Recording{path: path, clock: clock}
	for _, file := range files {
		if err := r.open(file, config); err != nil {
			_ = r.Close()
			return nil, err
		}
	}
	if len(r.readers) == 0 {
		return nil, fmt.Errorf(
			"%w: %s has none of the cameras %s",
			ErrRecording,
			path,
			strings.Join(config.Serials, ", "),
		)
	}
	r.fps, r.pace = float64(r.readers[0].head.FPS), 1
	if fps > 0 {
		r.pace = fps / r.fps
	}
	r.times = timetable{interval: time.Duration(float64(time.Second) / r.FrameRate())}
	r.heads, r.shown = make([]*picture, len(r.readers)), make([]*picture, len(r.readers))
	return r, nil
}

// recordingFiles returns the files to play.
func recordingFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrRecording, err)
	case !info.IsDir():
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecording, err)
	}
	var files []string
	for _, entry := range entries {
		if extension := filepath.Ext(entry.Name()); extension == ".db3" || extension == ".bag" {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	if len(files) == 0 || len(files) > depth.MaxCameras {
		return nil, fmt.Errorf(
			"%w: %s has %d files .db3 or .bag, expected 1 to %d",
			ErrRecording,
			path,
			len(files),
			depth.MaxCameras,
		)
	}
	return files, nil
}

func (r *Recording) open(file string, config Config) error {
	reader, err := openRecordingReader(config, file, messageTimeout)
	if err != nil {
		return err
	}
	camera := reader.head.Camera
	if len(config.Serials) > 0 && !slices.Contains(config.Serials, camera.Name) {
		reader.close()
		return nil
	}
	r.readers = append(r.readers, reader)
	for _, other := range r.cameras {
		if other.Name == camera.Name {
			return fmt.Errorf(
				"%w: %s is of camera %s, as another in %s is; expected one of each",
				ErrRecording,
				file,
				camera.Name,
				r.path,
			)
		}
	}
	if camera.Pose, err = config.Calibration.Pose(camera.Name); err != nil {
		return err
	}
	r.cameras = append(r.cameras, camera)
	return nil
}

// Cameras returns the cameras in the order of the bits in pointcloud.Cloud.Sources. The names are
// serial numbers.
func (r *Recording) Cameras() []depth.Camera { return r.cameras }

// FrameRate returns the frame rate in frames per second.
func (r *Recording) FrameRate() float64 { return r.fps * r.pace }

// Description returns a human-readable description.
func (r *Recording) Description() string {
	return fmt.Sprintf(
		"RealSense recording %s, %dx%d at %g fps",
		r.path,
		r.cameras[0].Width,
		r.cameras[0].Height,
		r.FrameRate(),
	)
}

// Read waits until the next take is due and stores it. The first is due immediately. If the caller
// is late, takes that are over are skipped. Read returns the error of a context that ends first,
// and the error of a file until the file is readable again.
func (r *Recording) Read(ctx context.Context, take *Take) error {
	if r.closed {
		return ErrClosed
	}
	for {
		at, err := r.gather(ctx)
		if err != nil {
			return err
		}
		due, skip := r.times.plan(at, r.clock.Now())
		r.show()
		if skip {
			continue
		}
		if err := r.clock.Wait(ctx, due); err != nil {
			return err
		}
		now := r.clock.Now()
		take.Capture = now.Add(
			due.Sub(now),
		) // the monotonic part is that of the deadline; the wall time follows adjustments of the clock
		take.Number, take.Skipped = r.times.count(due)
		take.Images = take.Images[:0]
		for _, p := range r.shown {
			take.Images = append(take.Images, p.image)
		}
		return nil
	}
}

// gather waits until the next pictures of the files belong to one instant. gather returns that instant, counted from
// the start of the recording.
func (r *Recording) gather(ctx context.Context) (time.Duration, error) {
	for {
		for i := range r.readers {
			if r.heads[i] != nil {
				continue
			}
			if err := r.advance(ctx, i); errors.Is(err, errEnd) {
				if err := r.rewind(ctx, i); err != nil {
					return 0, err
				}
				break
			} else if err != nil {
				return 0, err
			}
		}
		if slices.Contains(r.heads, nil) {
			continue // one file has ended: all start again
		}
		newest := r.time(0)
		for i := range r.readers {
			newest = max(newest, r.time(i))
		}
		half := time.Duration(float64(time.Second) / r.fps / 2)
		together := true
		for i := range r.readers {
			if newest-r.time(i) > half {
				r.drop(i)
				together = false
			}
		}
		if together {
			return time.Duration(float64(r.time(0)) / r.pace), nil
		}
	}
}

// time returns the capture time of the next picture of a file, counted from the start.
func (r *Recording) time(i int) time.Duration {
	return time.Duration((r.heads[i].stamp - r.origins[i]) * float64(time.Millisecond))
}

// errEnd reports that a file has ended. The next picture is the first picture again.
var errEnd = errors.New("end of the recording")

// advance reads the next picture of a file.
func (r *Recording) advance(ctx context.Context, i int) error {
	select {
	case next := <-r.readers[i].frames:
		switch {
		case next.err != nil:
			r.readers[i].frames <- next // for later calls
			return next.err
		case next.picture == nil:
			return errEnd
		}
		r.heads[i] = next.picture
		r.locate()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// locate sets the origin of times once every file has a first picture. Stamps of the host's clock are comparable;
// cameras with their own clocks are assumed to have started together.
func (r *Recording) locate() {
	if r.origins != nil || slices.Contains(r.heads, nil) {
		return
	}
	common := true
	earliest := r.heads[0].stamp
	for _, head := range r.heads {
		common = common && head.domain != rs2.HardwareClock
		earliest = min(earliest, head.stamp)
	}
	for _, head := range r.heads {
		origin := head.stamp
		if common {
			origin = earliest
		}
		r.origins = append(r.origins, origin)
	}
}

// rewind skips to the end of the other files.
func (r *Recording) rewind(ctx context.Context, ended int) error {
	for i := range r.readers {
		if i == ended {
			continue
		}
		for {
			r.drop(i)
			err := r.advance(ctx, i)
			if errors.Is(err, errEnd) {
				break
			}
			if err != nil {
				return err
			}
		}
	}
	r.times.restart()
	return nil
}

// drop returns the next picture of a file to the file's reader.
func (r *Recording) drop(i int) {
	if r.heads[i] != nil {
		r.readers[i].free <- r.heads[i]
		r.heads[i] = nil
	}
}

// show makes the next pictures the shown pictures, and returns the previous pictures to the readers.
func (r *Recording) show() {
	for i, p := range r.shown {
		if p != nil {
			r.readers[i].free <- p
		}
		r.shown[i], r.heads[i] = r.heads[i], nil
	}
}

// Close ends the players.
func (r *Recording) Close() error {
	if !r.closed {
		r.closed = true
		for _, reader := range r.readers {
			reader.close()
		}
	}
	return nil
}
