package carriage

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Capture is a cloud at one instant, or the index of prepared frames.
type Capture struct {
	// At is the captured instant, Acquired is when the source had delivered the capture, Missed is the number of
	// earlier captures that fell due without being read.
	At, Acquired time.Time
	Missed       int64
	frame        capture.Frame
	index        int
}

// Job requests one tile of a capture at one quality.
type Job struct {
	Tile    int
	Quality volumetric.Quality
}

// Encoded is the result of a job. The frame's Data is valid until the call that passes it returns.
type Encoded struct {
	Frame  Frame
	Record frametimes.Record
}

// Feed is the source of a publication's frames: clouds that are encoded live, or prepared frames.
type Feed interface {
	// Publication describes the publication.
	Publication() volumetric.Publication
	// Read waits for the next capture that falls due, like capture.Source.
	Read(ctx context.Context, c *Capture) error
	// Encode makes the frames of a capture that wanted selects, and passes each to done immediately. Both functions
	// are called from several goroutines.
	Encode(c *Capture, number uint32, wanted func(Job) bool, done func(*Encoded)) error
	// Close stops the feed. Read and Encode must not be running.
	Close() error
}

// begin records the times of a capture in the record of a frame.
func (c *Capture) begin(r *frametimes.Record, taken time.Time) {
	r.Set(frametimes.Captured, c.At)
	r.Set(frametimes.Acquired, c.Acquired)
	r.Set(frametimes.TilingBegan, taken)
}
