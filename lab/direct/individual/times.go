package individual

import (
	"slices"
	"time"
)

const (
	// timeMemory is the number of frames whose median time per point is used. With a median of five, a single delayed
	// frame has no effect, and a change of the load is effective after three frames. The model's mean over seconds is
	// for planning; here, a frame that takes too long costs one frame.
	timeMemory = 5
	// leastPoints is encoded even on a busy machine: a frame that takes longer than the interval with so few points
	// would not be much faster with fewer.
	leastPoints = 1000
)

// times has the recent encoding times.
type times struct {
	// recent has nanoseconds per point.
	recent [timeMemory]float64
	count  int
}

func (t *times) observe(points int, took time.Duration) {
	t.recent[t.count%timeMemory] = float64(took) / float64(points)
	t.count++
}

// points returns how many of the given points can be encoded within a time.
func (t *times) points(budget time.Duration, of int) int {
	if t.count == 0 {
		return of
	}
	recent := t.recent
	known := recent[:min(t.count, timeMemory)]
	slices.Sort(known)
	perPoint := known[(len(known)-1)/2]
	if perPoint*float64(of) <= float64(budget) {
		return of
	}
	return min(of, max(leastPoints, int(float64(budget)/perPoint)))
}
