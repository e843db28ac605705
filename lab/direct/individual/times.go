package individual

import (
	"slices"
	"time"
)

const (
	// timeMemory is how many frames count for the time per point: of five the median, so that one that something else
	// held up says nothing, and a machine that has become busy, or free again, is believed with the third. The model's
	// mean of seconds is for planning; here a frame that takes too long costs one frame.
	timeMemory = 5
	// leastPoints are encoded however busy the machine is: what takes longer than an interval with so few takes so long
	// with fewer.
	leastPoints = 1000
)

// times is how long points have taken lately.
type times struct {
	// recent are nanoseconds per point.
	recent [timeMemory]float64
	count  int
}

func (t *times) observe(points int, took time.Duration) {
	t.recent[t.count%timeMemory] = float64(took) / float64(points)
	t.count++
}

// points is how many of so many are encoded within a time.
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
