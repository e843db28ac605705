package congestion

import (
	"math"
	"time"
)

// The constants are libwebrtc's, which replaced those of the draft when it replaced the filter.
const (
	// trendGain and maxTrendGroups scale the slope: a full count of groups makes 1 % of overuse 2.4.
	trendGain      = 4
	maxTrendGroups = 60
	// startThreshold is 5.2 % of overuse. The threshold stays between 2.5 % and, in effect, none.
	startThreshold = 12.5
	minThreshold   = 6
	maxThreshold   = 600
	// Per ms, the share of the distance by which the threshold follows the trend: slowly upwards, so that overuse is noticed; faster downwards.
	thresholdUp   = 0.0087
	thresholdDown = 0.039
	// maxThresholdOffset is how far above the threshold a trend may lie and still move it: a sudden loss of capacity must not.
	maxThresholdOffset = 15
	// maxThresholdStep bounds the time that one step makes up for.
	maxThresholdStep = 100 * time.Millisecond
	// minOveruse is how long the trend has to exceed the threshold.
	minOveruse = 10 * time.Millisecond
)

// overuseDetector compares the slope of the delay with an adaptive threshold (draft-ietf-rmcat-gcc-02 section 5.4).
type overuseDetector struct {
	threshold float64
	trend     float64 // the slope, scaled
	usage     Usage
	groups    int
	slope     float64 // of the step before
	timing    bool    // the trend exceeds the threshold
	overusing time.Duration
	exceeded  int // groups above the threshold since overuse was found last
	adapted   time.Duration
}

// add takes the slope after one more comparison of groups.
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
			// The line was crossed somewhere since the last group: half of the time is the mean.
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

// reset forgets everything.
func (o *overuseDetector) reset() { *o = overuseDetector{} }
