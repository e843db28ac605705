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

// Clock is the time that a recording is played in.
type Clock interface {
	Now() time.Time
	// Wait returns nil once the clock has reached the time, or the context's error if that ends before.
	Wait(ctx context.Context, until time.Time) error
}

// Recording is files that were recorded from cameras, played over and over as if the cameras captured now. It belongs to the goroutine that reads it.
type Recording struct {
	path    string
	clock   Clock
	cameras []depth.Camera
	reels   []*reel
	heads   []*picture // the next picture of each reel, nil where it is not there yet
	shown   []*picture // those of the latest take
	fps     float64
	pace    float64 // how much faster than recorded it is played
	origins []float64
	times   timetable
	closed  bool
}

// OpenRecording opens a recording, or all recordings in a folder, which are taken to be of cameras that captured together. It is played at a frame
// rate other than its own where fps is not 0. Of the configuration Library, Filters, Calibration and Serials count: where there are serial numbers, the
// others' recordings are left out.
//
// Errors are around rs2.ErrUnavailable, rs2.ErrVersion, ErrConfig, ErrRecording or depth.ErrCalibration.
func OpenRecording(path string, fps float64, clock Clock, config Config) (*Recording, error) {
	// Without the library, or with one that cannot be used, the player could only say the same less clearly.
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
	if len(r.reels) == 0 {
		return nil, fmt.Errorf("%w: %s has none of the cameras %s", ErrRecording, path, strings.Join(config.Serials, ", "))
	}
	r.fps, r.pace = float64(r.reels[0].head.FPS), 1
	if fps > 0 {
		r.pace = fps / r.fps
	}
	r.times = timetable{interval: time.Duration(float64(time.Second) / r.FrameRate())}
	r.heads, r.shown = make([]*picture, len(r.reels)), make([]*picture, len(r.reels))
	return r, nil
}

// recordingFiles are the files to play.
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
		return nil, fmt.Errorf("%w: %s has %d files .db3 or .bag, expected 1 to %d", ErrRecording, path, len(files), depth.MaxCameras)
	}
	return files, nil
}

func (r *Recording) open(file string, config Config) error {
	reel, err := openReel(config, file, hanging)
	if err != nil {
		return err
	}
	camera := reel.head.Camera
	if len(config.Serials) > 0 && !slices.Contains(config.Serials, camera.Name) {
		reel.close()
		return nil
	}
	r.reels = append(r.reels, reel)
	for _, other := range r.cameras {
		if other.Name == camera.Name {
			return fmt.Errorf("%w: %s is of camera %s, as another in %s is; expected one of each", ErrRecording, file, camera.Name, r.path)
		}
	}
	if camera.Pose, err = config.Calibration.Pose(camera.Name); err != nil {
		return err
	}
	r.cameras = append(r.cameras, camera)
	return nil
}

// Cameras describes the cameras, by their bits in pointcloud.Cloud.Sources, called as their serial numbers.
func (r *Recording) Cameras() []depth.Camera { return r.cameras }

// FrameRate is in frames per second.
func (r *Recording) FrameRate() float64 { return r.fps * r.pace }

// Description is for people.
func (r *Recording) Description() string {
	return fmt.Sprintf("RealSense recording %s, %dx%d at %g fps", r.path, r.cameras[0].Width, r.cameras[0].Height, r.FrameRate())
}

// Read waits until the next take is due and replaces the one given. The first is due at once. Where the caller is late, takes that are over are skipped. It
// returns the context's error when that ends first, and what went wrong with a file for as long as it is read.
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
		take.Capture = now.Add(due.Sub(now)) // the monotonic part is the deadline's, the wall clock follows a clock that was set
		take.Number, take.Skipped = r.times.count(due)
		take.Images = take.Images[:0]
		for _, p := range r.shown {
			take.Images = append(take.Images, p.image)
		}
		return nil
	}
}

// gather waits until the reels' next pictures are of one instant, and returns that, counted from the recording's beginning.
func (r *Recording) gather(ctx context.Context) (time.Duration, error) {
	for {
		for i := range r.reels {
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
			continue // one has come to its end: all begin again
		}
		newest := r.time(0)
		for i := range r.reels {
			newest = max(newest, r.time(i))
		}
		half := time.Duration(float64(time.Second) / r.fps / 2)
		together := true
		for i := range r.reels {
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

// time is when a reel's next picture was taken, counted from the beginning.
func (r *Recording) time(i int) time.Duration {
	return time.Duration((r.heads[i].stamp - r.origins[i]) * float64(time.Millisecond))
}

// errEnd says that a reel is at its end. Its next picture is its first.
var errEnd = errors.New("end of the recording")

// advance takes a reel's next picture.
func (r *Recording) advance(ctx context.Context, i int) error {
	select {
	case next := <-r.reels[i].frames:
		switch {
		case next.err != nil:
			r.reels[i].frames <- next // for those who ask again
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

// locate fixes what times are counted from, once every reel has shown its first picture. Stamps of the host's clock are comparable; cameras with clocks of their
// own are taken to have begun together.
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

// rewind brings the other reels to their end, too.
func (r *Recording) rewind(ctx context.Context, ended int) error {
	for i := range r.reels {
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

// drop gives a reel its next picture back.
func (r *Recording) drop(i int) {
	if r.heads[i] != nil {
		r.reels[i].free <- r.heads[i]
		r.heads[i] = nil
	}
}

// show makes the next pictures the shown ones, and gives the reels back those shown before.
func (r *Recording) show() {
	for i, p := range r.shown {
		if p != nil {
			r.reels[i].free <- p
		}
		r.shown[i], r.heads[i] = r.heads[i], nil
	}
}

// Close ends the players.
func (r *Recording) Close() error {
	if !r.closed {
		r.closed = true
		for _, reel := range r.reels {
			reel.close()
		}
	}
	return nil
}
