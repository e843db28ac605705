package carriage

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Capture is a cloud at one instant, or the place of prepared frames.
type Capture struct {
	// At is the instant that it shows, Acquired when the source had given it, Missed how many before it fell due without being read.
	At, Acquired time.Time
	Missed       int64
	frame        capture.Frame
	index        int
}

// Job asks for one tile of a capture at one quality.
type Job struct {
	Tile    int
	Quality volumetric.Quality
}

// Encoded is what became of a job. The frame's Data is valid until the call that hands it over returns.
type Encoded struct {
	Frame  Frame
	Record frametimes.Record
}

// Feed is where the frames of a publication come from: clouds that are encoded as they come, or frames that were prepared.
type Feed interface {
	// Publication describes it.
	Publication() volumetric.Publication
	// Read waits for the next capture that falls due, as capture.Source does.
	Read(ctx context.Context, c *Capture) error
	// Encode makes the frames of a capture that wanted wants, and hands each over as soon as it is there. Both functions are called from several goroutines.
	Encode(c *Capture, number uint32, wanted func(Job) bool, done func(*Encoded)) error
	// Close ends what the feed keeps running. It is called once neither Read nor Encode is under way.
	Close() error
}

// begin notes what is known of a capture in the record of a frame.
func (c *Capture) begin(r *frametimes.Record, taken time.Time) {
	r.Set(frametimes.Captured, c.At)
	r.Set(frametimes.Acquired, c.Acquired)
	r.Set(frametimes.TilingBegan, taken)
}
