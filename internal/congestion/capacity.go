package congestion

import "math"

const (
	// capacityWeight is the weight of a new sample, as in libwebrtc.
	capacityWeight = 0.05
	// The deviation is relative to the capacity; the bounds are three deviations away. libwebrtc's deviation grows with
	// the square root of the rate, which at 100 Mbit/s is less than the 3 % by which the rates of varying frames
	// differ.
	minDeviation = 0.02
	maxDeviation = 0.10
)

// linkCapacity averages the acknowledged rates measured while the path was overused.
type linkCapacity struct {
	estimate float64 // bit/s, 0 while unknown
	variance float64 // relative to the estimate
}

func (c *linkCapacity) known() bool { return c.estimate > 0 }

func (c *linkCapacity) overused(acknowledged float64) {
	if !c.known() {
		c.estimate, c.variance = acknowledged, minDeviation*minDeviation
		return
	}
	deviation := (acknowledged - c.estimate) / c.estimate
	c.variance += capacityWeight * (deviation*deviation - c.variance)
	c.variance = min(max(c.variance, minDeviation*minDeviation), maxDeviation*maxDeviation)
	c.estimate += capacityWeight * (acknowledged - c.estimate)
}

func (c *linkCapacity) upper() float64 {
	if !c.known() {
		return math.Inf(1)
	}
	return c.estimate * (1 + 3*math.Sqrt(c.variance))
}

func (c *linkCapacity) lower() float64 {
	return max(0, c.estimate*(1-3*math.Sqrt(c.variance)))
}

func (c *linkCapacity) reset() { *c = linkCapacity{} }
