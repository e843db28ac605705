package paper002

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/direct"
)

// The paper's producer takes the next frame of its camera whenever it is done with the one before (section 3.3), which leaves 7 to 13 of 30 per second. Producer, consumer
// and network have machines of their own there. Where they share one, a producer that takes all it gets of the processors slows down the consumer, the link and itself, and
// figures tell of that. So every n-th frame is taken, with the least n that this machine holds; a trial that takes all it gets finds it.

// camera is how many frames per second the paper's camera has.
const camera = 30

const (
	// trial is how long is tried, after warming up: some 25 frames of the slowest cells.
	trial = 3 * time.Second
	// headroom is how much longer than on average a frame may take until the next one waits for it: single frames deviate by a quarter where both ends are busy at once.
	headroom = 1.3
	// share is the part of all processors' time that a cell may take. At 85 % one frame in fifteen came too late for its encoder.
	share = 0.75
)

// errTrial says that nothing came of a trial.
var errTrial = errors.New("trial of the frame rate: fewer than two frames were sent")

// load is what a trial tells of one frame, in milliseconds.
type load struct {
	// produce and consume are the means of what producer and consumer do one after the other for a frame.
	produce, consume float64
	// interval is from one capture to the next, while all processors were busy for a share of the time, 0 to 1.
	interval, busy float64
}

// rate is the highest that the producer, the consumer and all processors together hold, out of 30, 15, 10, 7.5, …
func (l load) rate() float64 {
	held := max(headroom*l.produce, headroom*l.consume, l.busy*l.interval/share)
	return camera / max(1, math.Ceil(held*camera/1000-1e-9))
}

// loadOf is what the frames of a trial tell.
func loadOf(frames []direct.Frame, busy float64) (load, error) {
	n := len(frames)
	if n < 2 {
		return load{}, errTrial
	}
	return load{
		produce: experiment.Mean(direct.Span(frames, direct.Captured, direct.Encoded)), consume: experiment.Mean(direct.Span(frames, direct.DecodeBegun, direct.Shown)),
		interval: float64(frames[n-1].Capture-frames[0].Capture) / 1e3 / float64(n-1), busy: busy,
	}, nil
}

// heldRate is the rate of a cell, which is found once for all iterations of a run.
func (s streaming) heldRate(ctx context.Context, network *direct.Metered, source *direct.Source, settings *experiment.Settings) (float64, error) {
	key := fnv.New64a()
	_, _ = fmt.Fprintf(key, "%+v", s)
	file := filepath.Join(settings.Shared, fmt.Sprintf("held-rate-%016x", key.Sum64()))
	if text, err := os.ReadFile(file); err == nil {
		return strconv.ParseFloat(string(text), 64)
	}
	s.FPS, s.Clouds = camera, 0
	frames, _, err := s.stream(ctx, network, source, warmUp+trial, settings)
	if err != nil {
		return 0, fmt.Errorf("trial of the frame rate: %w", err)
	}
	l, err := loadOf(direct.Between(frames, warmUp, 0), network.Busy())
	if err != nil {
		return 0, err
	}
	return l.rate(), os.WriteFile(file, []byte(strconv.FormatFloat(l.rate(), 'g', -1, 64)), 0o666)
}
