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
	resumed chan error // has what came of resuming the device, once
	begun   bool       // a picture was there
}

// openFilm opens a recording with a context of its own, which holds the file.
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

// stuck is how long a file may give no image without having ended. Reading one takes some milliseconds.
const stuck = 5 * time.Second

// next replaces a picture by the next one, false at the end.
func (f *film) next(into *picture) (bool, error) {
	for begun := time.Now(); ; {
		// Asked before the wait: what the library has handed out by its end is in the queue then.
		ended, err := f.device.Ended()
		if err != nil {
			return false, err
		}
		got, err := f.stream.next(slice, into)
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
		case ended && f.begun: // before it begins, a recording looks as if it had ended
			return false, nil
		case time.Since(begun) > stuck:
			return false, fmt.Errorf("%w: no pair of depth and colour images, and no end, for %v", ErrRecording, stuck)
		}
	}
}

// close is called at the recording's end: while images wait to be taken, the library waits with them.
func (f *film) close() {
	<-f.resumed
	f.stream.close()
	f.context.Close()
}
