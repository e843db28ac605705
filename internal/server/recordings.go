package server

import (
	"time"

	"github.com/volsfu/volsfu/internal/metrics"
	"github.com/volsfu/volsfu/internal/recorder"
	"github.com/volsfu/volsfu/internal/sfu/roomrecording"
)

// rooms is the recorder of a node. rooms implements sfu.Recorder.
type rooms struct{ *recorder.Recorder }

// Start implements sfu.Recorder.
func (r rooms) Start(room string, now time.Time) roomrecording.Writer {
	return r.Recorder.Start(room, now)
}

// openRecorder opens the folder of recordings if there is one, and makes the recorder that of all rooms.
func (s *startup) openRecorder() error {
	c := &s.config
	if c.Recordings.Directory == "" {
		return nil
	}
	c.Recordings.Guard, c.Recordings.FrameBytes = c.Rooms.Guard, c.Forward.MaxFrameBytes
	r, err := recorder.New(c.Recordings, s.options.Version, s.log)
	if err != nil {
		return err
	}
	s.recorder, c.Rooms.Recorder = r, rooms{r}
	gauge := func(name string, value func(recorder.Stats) int64) metrics.Reading {
		return metrics.Reading{Name: name, Value: func() float64 { return float64(value(r.Stats())) }}
	}
	count := func(name, reason string, value func(recorder.Stats) uint64) metrics.Reading {
		return metrics.Counted(name, reason, func() uint64 { return value(r.Stats()) })
	}
	return metrics.Register(s.registry,
		gauge(metrics.RecordedRooms, func(s recorder.Stats) int64 { return int64(s.Rooms) }),
		gauge(metrics.RecordingDisk, func(s recorder.Stats) int64 { return s.DiskBytes }),
		gauge(metrics.RecordingQueue, func(s recorder.Stats) int64 { return s.QueuedBytes }),
		count(metrics.RecordedFrames, "", func(s recorder.Stats) uint64 { return s.Frames }),
		count(metrics.RecordedBytes, "", func(s recorder.Stats) uint64 { return s.Bytes }),
		count(metrics.RecordingLost, "incomplete", func(s recorder.Stats) uint64 { return s.Incomplete }),
		count(metrics.RecordingLost, "overrun", func(s recorder.Stats) uint64 { return s.Overrun }),
		count(metrics.RecordingLost, "discarded", func(s recorder.Stats) uint64 { return s.Discarded }),
		count(metrics.RecordingFailures, "", func(s recorder.Stats) uint64 { return s.Failures }),
		count(metrics.RecordingDeleted, "", func(s recorder.Stats) uint64 { return s.Deleted }),
	)
}
