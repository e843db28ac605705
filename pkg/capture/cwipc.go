package capture

import (
	"fmt"

	"github.com/volsfu/volsfu/pkg/capture/cwipc"
)

// openCWIPC plays dumps of cwipc, with the capture times of the dumps if these are usable.
func openCWIPC(clock Clock, path string, options Options) (Source, error) {
	dumps, err := cwipc.Open(path)
	if err != nil {
		return nil, err
	}
	description := fmt.Sprintf("%d cwipc frames from %s", dumps.Len(), path)
	if size := dumps.CellSize(); size > 0 {
		description += fmt.Sprintf(", a point for %.3g mm", 1000*size)
	}
	times, timed := dumps.Times()
	own := float64(defaultFPS)
	if timed {
		own = dumps.FrameRate()
	}
	info := Info{Description: description, FrameRate: options.rate(own)}
	source, err := playClip(clock, dumpFiles{dumps}, info, options)
	if err != nil {
		return nil, err
	}
	if timed {
		source.schedule = newTimetable(times, own, info.FrameRate)
	}
	return source, nil
}

// dumpFiles is a recording of dumps as footage.
type dumpFiles struct{ *cwipc.Recording }

// Load implements footage.
func (d dumpFiles) Load(index int, into *shot) error {
	into.images = into.images[:0]
	return d.Recording.Load(index, &into.cloud)
}

// Close implements footage. No file stays open.
func (d dumpFiles) Close() error { return nil }
