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

// camera is the frame rate of the paper's camera.
//
// The paper's producer takes the next frame of its camera when the previous frame is done (section 3.3), which yields 7
// to 13 of 30 frames per second. In the paper, producer, consumer and network have separate machines. If all share one
// machine, a producer that uses all free processor time slows down the consumer, the link and itself, and the figures
// describe this contention. Therefore every n-th frame is captured, with the smallest n that this machine can sustain.
// A trial run without a limit determines n.

// camera is how many frames per second the paper's camera has.
const camera = 30

const (
	// trial is the length of the trial, after warming up: some 25 frames of the slowest cells.
	trial = 3 * time.Second
	// headroom is the factor over the mean time of a frame before the next frame has to wait: single frames deviate by
	// a quarter if both ends are busy at once.
	headroom = 1.3
	// share is the part of all processors' time that a cell may use. At 85 %, one frame in fifteen was too late for its
	// encoder.
	share = 0.75
)

// errTrial reports a trial without a result.
var errTrial = errors.New("trial of the frame rate: fewer than two frames were sent")

// load describes one frame of a trial, in milliseconds.
type load struct {
	// produce and consume are the mean times that producer and consumer spend on a frame.
	produce, consume float64
	// interval is the time between captures; busy is the utilisation of all processors, 0 to 1.
	interval, busy float64
}

// rate returns the highest rate that the producer, the consumer and all processors together can sustain, out of 30, 15,
// 10, 7.5, …
func (l load) rate() float64 {
	held := max(headroom*l.produce, headroom*l.consume, l.busy*l.interval/share)
	return camera / max(1, math.Ceil(held*camera/1000-1e-9))
}

// loadOf returns the load of a trial's frames.
func loadOf(frames []direct.Frame, busy float64) (load, error) {
	n := len(frames)
	if n < 2 {
		return load{}, errTrial
	}
	return load{
		produce:  experiment.Mean(direct.Span(frames, direct.Captured, direct.Encoded)),
		consume:  experiment.Mean(direct.Span(frames, direct.DecodeBegun, direct.Shown)),
		interval: float64(frames[n-1].Capture-frames[0].Capture) / 1e3 / float64(n-1), busy: busy,
	}, nil
}

// heldRate returns the rate of a cell, determined once for all iterations of a run.
func (s streaming) heldRate(ctx context.Context, network *direct.Metered, source *direct.Source,
	settings *experiment.Settings) (float64, error) {
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
