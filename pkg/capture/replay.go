package capture

import (
	"fmt"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/journal"
)

// openReplay plays a journal of clouds or images with its capture times.
func openReplay(clock Clock, path string, options Options) (Source, error) {
	reader, err := journal.Open(path)
	if err != nil {
		return nil, err
	}
	source, err := newReplay(clock, reader, path, options)
	if err != nil {
		_ = reader.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return source, nil
}

func newReplay(clock Clock, reader *journal.Reader, path string, options Options) (Source, error) {
	head := reader.Head()
	info := Info{
		Description: fmt.Sprintf("%d frames from %s of %s", len(reader.Entries()), path, head.Description),
		FrameRate:   options.rate(head.FrameRate),
	}
	var frames footage
	switch head.Content {
	case journal.Points:
		frames = &tape{reader: reader}
	case journal.Images:
		var recordings []recording
		for i := range head.Cameras {
			recordings = append(recordings, journalCamera{reader, i})
		}
		r, err := newRig(recordings, options)
		if err != nil {
			return nil, err
		}
		frames, info.Cameras = r, r.cameras
	default:
		return nil, fmt.Errorf(
			"%w: the frames are encoded; volpeer publish sends them unchanged and cannot merge them",
			ErrArgument,
		)
	}
	source, err := playClip(clock, frames, info, options)
	if err != nil {
		return nil, err
	}
	source.schedule = newTimetable(timesOf(reader.Entries()), head.FrameRate, info.FrameRate)
	return source, nil
}

// timesOf returns the capture times of a journal's frames.
func timesOf(entries []journal.Entry) []time.Duration {
	times := make([]time.Duration, len(entries))
	for i, e := range entries {
		times[i] = e.Captured
	}
	return times
}

// tape is a journal of clouds as footage.
type tape struct {
	reader *journal.Reader
}

// Len implements footage.
func (t *tape) Len() int { return len(t.reader.Entries()) }

// shuffled marks that the points are already in random order.
func (t *tape) shuffled() {}

// Load implements footage.
func (t *tape) Load(index int, into *shot) error {
	frame := journal.Frame{Cloud: into.cloud, Images: into.images}
	err := t.reader.ReadFrame(index, &frame)
	into.cloud, into.images = frame.Cloud, frame.Images[:0]
	return err
}

// Close implements footage.
func (t *tape) Close() error { return t.reader.Close() }

// journalCamera is one camera of a journal of images.
type journalCamera struct {
	reader *journal.Reader
	camera int
}

// Camera implements recording.
func (r journalCamera) Camera() depth.Camera { return r.reader.Head().Cameras[r.camera] }

// Description implements recording.
func (r journalCamera) Description() string { return r.reader.Head().Description }

// Len implements recording.
func (r journalCamera) Len() int { return len(r.reader.Entries()) }

// FrameRate implements recording.
func (r journalCamera) FrameRate() float64 { return r.reader.Head().FrameRate }

// Time implements recording.
func (r journalCamera) Time(index int) time.Duration { return r.reader.Entries()[index].Captured }

// Synchronized implements recording. All cameras of a frame have the frame's time.
func (r journalCamera) Synchronized() bool { return true }

// LoadImage implements recording. The image is empty if the camera has no image in this frame.
func (r journalCamera) LoadImage(index int, into *depth.Image) error {
	frame := journal.Frame{Images: make([]depth.Image, r.camera+1)}
	frame.Images[r.camera] = *into // reuse its memory
	err := r.reader.ReadFrame(index, &frame)
	if err != nil || r.camera >= len(frame.Images) {
		into.CopyFrom(&depth.Image{})
		return err
	}
	*into = frame.Images[r.camera]
	return nil
}

// Close implements recording. All cameras share the file.
func (r journalCamera) Close() error {
	if r.camera > 0 {
		return nil
	}
	return r.reader.Close()
}
