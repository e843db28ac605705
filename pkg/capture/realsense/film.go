package realsense

import (
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/realsense/rs2"
)

// film is a recording that the library reads in this process.
type film struct {
	context *rs2.Context
	device  *rs2.Device
	stream  *stream
	resumed chan error // receives the result of resuming the device, once
	begun   bool       // at least one picture was read
}

// openFilm opens a recording with its own context, which keeps the file open.
func openFilm(library *rs2.Library, path string, filters Filters) (*film, error) {
	context, err := library.NewContext()
	if err != nil {
		return nil, err
	}
	device, err := context.Play(path)
	if err != nil {
		context.Close()
		return nil, err
	}
	stream, err := startStream(library, device, "", wanted{}, filters)
	if err != nil {
		context.Close()
		return nil, err
	}
	f := &film{context: context, device: device, stream: stream, resumed: make(chan error, 1)}
	go func() { f.resumed <- device.Resume() }()
	return f, nil
}

// stallTimeout is the maximum time without an image before the end of a file. Reading an image takes some
// milliseconds.
const stallTimeout = 5 * time.Second

// next replaces a picture by the next one and returns false at the end.
func (f *film) next(into *picture) (bool, error) {
	for begun := time.Now(); ; {
		// The check precedes the wait: all frames handed out before the end are then in the queue.
		ended, err := f.device.Ended()
		if err != nil {
			return false, err
		}
		got, err := f.stream.next(waitSlice, into)
		select {
		case failed := <-f.resumed:
			f.resumed <- nil
			err = errors.Join(err, failed)
		default:
		}
		switch {
		case err != nil:
			return false, err
		case got:
			f.begun = true
			return true, nil
		case ended && f.begun: // before its first image, a recording also reports its end
			return false, nil
		case time.Since(begun) > stallTimeout:
			return false, fmt.Errorf("%w: no pair of depth and colour images, and no end, for %v", ErrRecording,
				stallTimeout)
		}
	}
}

// close must be called at the end of the recording: the library blocks while images are queued.
func (f *film) close() {
	<-f.resumed
	f.stream.close()
	f.context.Close()
}
