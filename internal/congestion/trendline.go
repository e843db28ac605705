package congestion

import "time"

const (
	// trendWindow is the number of groups of the fitted line. At 30 frames per second with three groups each, they
	// cover 220 ms.
	trendWindow = 20
	// trendSmoothing is the weight of the past in the exponential filter of the delay, as in libwebrtc.
	trendSmoothing = 0.9
)

// trendline fits a line to the delay of groups (draft-ietf-rmcat-gcc-02 section 5.3, with the linear regression of
// libwebrtc in place of the Kalman filter). While a queue grows, the slope is (rate - capacity) / capacity.
type trendline struct {
	at       [trendWindow]float64 // ms since first
	delay    [trendWindow]float64 // smoothed, ms
	count    int                  // groups so far
	first    time.Duration
	total    float64 // delay gained since the first group, ms
	smoothed float64
	slope    float64
}

// add adds the comparison of two groups and returns the slope, 0 before trendWindow groups.
func (t *trendline) add(d groupDelta) float64 {
	if t.count == 0 {
		t.first = d.at
	}
	t.total += milliseconds(d.arrived - d.sent)
	t.smoothed = trendSmoothing*t.smoothed + (1-trendSmoothing)*t.total
	i := t.count % trendWindow
	t.at[i], t.delay[i] = milliseconds(d.at-t.first), t.smoothed
	t.count++
	if t.count >= trendWindow {
		t.fit()
	}
	return t.slope
}

// fit computes the slope by least squares. If all groups arrived at the same time, the slope does not change.
func (t *trendline) fit() {
	var meanAt, meanDelay float64
	for i := range trendWindow {
		meanAt += t.at[i] / trendWindow
		meanDelay += t.delay[i] / trendWindow
	}
	var covariance, variance float64
	for i := range trendWindow {
		x := t.at[i] - meanAt
		covariance += x * (t.delay[i] - meanDelay)
		variance += x * x
	}
	if variance > 0 {
		t.slope = covariance / variance
	}
}

func (t *trendline) reset() { *t = trendline{} }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
