package allocate

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// BudgetInput is the input of a Budget beside the estimate.
type BudgetInput struct {
	// Audio is the rate of audio on the wire, in bit/s. Audio comes first.
	Audio volumetric.Bitrate
	// Overhead is the rate of headers, retransmissions and parity as a share of the media rate: 0.055 for headers
	// alone, which are 28 bytes of UDP and IP, 12 of RTP, 16 of SRTP's tag and 8 of extensions for 1,160 of payload.
	Overhead float64
	// DroppedFrames is the number of frames dropped since the last step because the receiver's queue was too old.
	DroppedFrames int
	// QueueDelay is the longer of the queue on the path and the sender's own queue.
	QueueDelay time.Duration
}

// Budget computes the media budget of a receiver from its estimate. A Budget belongs to the goroutine that steps it.
//
// The budget is the estimate less audio, less headroom, divided by the overhead factor. Queues and dropped frames
// reduce it for a moment. Falls apply at once. A rise is used except for a reserve, which is as large as the falls of
// the last seconds: of an estimate that varies by ±3 % the lower end is used and stays the budget, and an estimate that
// only rises is used whole.
//
// # Headroom
//
// Levels have mean rates, and their frames vary by ±20 % (evenly, 11.5 % in the root mean square σ). The excess over
// the mean waits at the bottleneck for smaller frames. At a load ρ such a queue holds σ²/(2(1-ρ)) frame intervals on
// average and three times that at its 95th percentile, if its lengths are distributed exponentially. With 4 % of
// headroom and all tiles varying together that is 0.165 and 0.50 frame intervals, 5.5 and 16.5 ms at 30 frames per
// second; if four tiles vary independently, a quarter of that. With 2 % it would be 33 ms at the 95th percentile; more
// than 30 ms is noticeable to users. More headroom would reduce the quality: 4 % is less than a tenth of a step of a
// ladder with factor 1.5.
type Budget struct {
	cfg     BudgetConfig
	begun   bool
	updated time.Time
	held    float64 // last result
	peak    float64 // recent maximum of the estimate
	reserve float64
	cut     float64
}

// peakTime is the time constant of the peak, so that a fall counts for the reserve if it takes less than some seconds.
const peakTime = 2 * time.Second

// leastRise is the smallest relative rise of the budget that justifies another allocation. No ladder has steps as small
// as this for a whole scene.
const leastRise = 0.01

// NewBudget returns a budget. An invalid configuration results in an error that wraps ErrConfig.
func NewBudget(cfg BudgetConfig) (*Budget, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Budget{cfg: cfg}, nil
}

// Step returns the media budget, in bit/s of RTP payload, for an estimate in bit/s on the wire. Step is called several
// times per second, when the estimate or the input has changed. A step at an earlier time than the last one counts as
// simultaneous with the last one.
func (b *Budget) Step(now time.Time, estimate volumetric.Bitrate, in BudgetInput) volumetric.Bitrate {
	var seconds float64
	if b.begun {
		seconds = max(now.Sub(b.updated).Seconds(), 0)
	}
	if !b.begun || now.After(b.updated) {
		b.updated = now
	}
	media := float64(max(estimate-max(in.Audio, 0), 0)) * (1 - b.cfg.Headroom) / (1 + overhead(in.Overhead))
	if !b.begun {
		b.begun, b.held, b.peak = true, media, media
	}
	b.learn(seconds, media)
	b.relieve(seconds, in)
	target := media * (1 - b.cut)
	switch rise := target * (1 - b.reserve); {
	case target < b.held:
		b.held = target
	case rise > b.held*(1+leastRise):
		b.held = rise
	}
	return volumetric.Bitrate(b.held)
}

// overhead bounds a share to 0 to 10.
func overhead(share float64) float64 {
	if !(share > 0) { // also true for NaN
		return 0
	}
	return min(share, 10)
}

// learn updates the reserve after falls. While the estimate does not fall, the reserve decays.
func (b *Budget) learn(seconds, media float64) {
	b.peak = max(media, media+(b.peak-media)*math.Exp(-seconds/peakTime.Seconds()))
	b.reserve *= math.Exp(-seconds / b.cfg.ReserveTime.Seconds())
	if b.peak > 0 {
		b.reserve = min(max(b.reserve, 1-media/b.peak), b.cfg.ReserveMax)
	}
}

// relieve reduces the budget for a moment while a queue is too long or frames were dropped. The estimator reduces its
// estimate as well, but later, and the sender's own queue does not affect the estimator.
func (b *Budget) relieve(seconds float64, in BudgetInput) {
	b.cut *= math.Exp(-seconds / b.cfg.CutTime.Seconds())
	b.cut += b.cfg.DropCut * float64(max(in.DroppedFrames, 0))
	if excess := in.QueueDelay - b.cfg.QueueMax; excess > 0 {
		// To empty a queue of q seconds within t, a share q/t of the capacity is needed.
		b.cut = max(b.cut, excess.Seconds()/b.cfg.QueueTime.Seconds())
	}
	b.cut = min(b.cut, b.cfg.CutMax)
}
