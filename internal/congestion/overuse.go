package congestion

import (
	"math"
	"time"
)

// The constants are those of libwebrtc, which replaced the draft's values together with the filter.
const (
	// trendGain and maxTrendGroups scale the slope: with maxTrendGroups groups, 1 % of overuse is 2.4.
	trendGain      = 4
	maxTrendGroups = 60
	// startThreshold is 5.2 % of overuse. The threshold is at least 2.5 %; maxThreshold is in effect no bound.
	startThreshold = 12.5
	minThreshold   = 6
	maxThreshold   = 600
	// Share of the distance, per ms, by which the threshold follows the trend: slowly upwards, so that overuse is
	// detected, and faster downwards.
	thresholdUp   = 0.0087
	thresholdDown = 0.039
	// A trend more than maxThresholdOffset above the threshold does not move it: a sudden loss of capacity must not.
	maxThresholdOffset = 15
	// maxThresholdStep bounds the elapsed time of one step.
	maxThresholdStep = 100 * time.Millisecond
	// The trend must exceed the threshold for minOveruse.
	minOveruse = 10 * time.Millisecond
)

// overuseDetector compares the slope of the delay with an adaptive threshold (draft-ietf-rmcat-gcc-02 section 5.4).
type overuseDetector struct {
	threshold float64
	trend     float64 // scaled slope
	usage     Usage
	groups    int
	slope     float64 // of the previous step
	timing    bool    // the trend exceeds the threshold
	overusing time.Duration
	exceeded  int // groups above the threshold since the last detection
	adapted   time.Duration
}

// add adds the slope after one more comparison of groups.
func (o *overuseDetector) add(slope float64, d groupDelta) {
	if o.groups == 0 {
		o.threshold, o.adapted = startThreshold, d.at
	}
	if o.groups = min(o.groups+1, maxTrendGroups); o.groups < 2 {
		return
	}
	o.trend = float64(o.groups) * slope * trendGain
	switch {
	case o.trend > o.threshold:
		if o.timing {
			o.overusing += d.sent
		} else {
			// The trend crossed the threshold at some time since the last group: on average half of the interval ago.
			o.timing, o.overusing = true, d.sent/2
		}
		o.exceeded++
		if o.overusing > minOveruse && o.exceeded > 1 && slope >= o.slope {
			o.overusing, o.exceeded = 0, 0
			o.usage = Overusing
		}
	case o.trend < -o.threshold:
		o.timing, o.exceeded, o.usage = false, 0, Underusing
	default:
		o.timing, o.exceeded, o.usage = false, 0, Normal
	}
	o.slope = slope
	o.adapt(d.at)
}

// adapt moves the threshold towards the trend, so that flows that fill queues do not starve this one.
func (o *overuseDetector) adapt(at time.Duration) {
	elapsed := min(max(at-o.adapted, 0), maxThresholdStep)
	o.adapted = at
	trend := math.Abs(o.trend)
	if trend > o.threshold+maxThresholdOffset {
		return
	}
	rate := thresholdUp
	if trend < o.threshold {
		rate = thresholdDown
	}
	o.threshold = min(max(o.threshold+rate*(trend-o.threshold)*milliseconds(elapsed), minThreshold), maxThreshold)
}

func (o *overuseDetector) reset() { *o = overuseDetector{} }
