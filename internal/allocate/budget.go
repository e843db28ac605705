package allocate

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// BudgetInput is what a Budget needs to know beside the estimate.
type BudgetInput struct {
	// Audio is what audio takes on the wire, in bit/s. It comes first.
	Audio volumetric.Bitrate
	// Overhead is what headers, retransmissions and parity take, as a share of what media take: 0.055 for headers alone, which are 28 bytes of UDP and IP, 12
	// of RTP, 16 of SRTP's tag and 8 of extensions for 1,160 of payload.
	Overhead float64
	// DroppedFrames is the number of frames that were dropped since the last step because the receiver's queue was too old.
	DroppedFrames int
	// QueueDelay is how long the queue on the path is, or the sender's own, whichever is longer.
	QueueDelay time.Duration
}

// Budget turns the estimate of a receiver into what media may take. It belongs to the goroutine that steps it.
//
// It is the estimate less audio, less headroom, divided by what each bit of media takes on the wire. Queues and dropped frames reduce it for a moment. Falls are
// obeyed at once. A rise is used but for a reserve, as large as the falls of the last seconds: of an estimate that wobbles by ±3 % the lower end is
// used and stays the budget, and one that only rises is used whole.
//
// # Headroom
//
// Levels have mean rates, and their frames vary by ±20 % (evenly, 11.5 % in the root mean square σ). What exceeds the mean waits at the bottleneck for smaller
// frames. With the load ρ a queue of that kind holds σ²/(2(1-ρ)) frame intervals in the mean and three times that at its 95th percentile, if its lengths are
// spread exponentially. With 4 % of headroom and all tiles varying together that is 0.165 and 0.50 frame intervals, 5.5 and 16.5 ms at 30 frames per second;
// where four tiles vary each for itself it is a quarter of that. With 2 % it would be 33 ms at the 95th percentile, and above 30 ms people are
// to be spared it. More headroom would come off the picture: 4 % is less than a tenth of a step of a ladder with factor 1.5.
type Budget struct {
	cfg     BudgetConfig
	begun   bool
	updated time.Time
	held    float64 // what was returned last
	peak    float64 // of the estimate, recently
	reserve float64
	cut     float64
}

// peakTime is the time in which a peak is forgotten to a third, so that a fall counts as one for the reserve if it takes less than some seconds.
const peakTime = 2 * time.Second

// leastRise is the share by which the budget has to rise to be worth another allocation. No ladder has steps as small as this for a whole scene.
const leastRise = 0.01

// NewBudget makes a budget. A configuration that Validate refuses gives an error around ErrConfig.
func NewBudget(cfg BudgetConfig) (*Budget, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Budget{cfg: cfg}, nil
}

// Step returns what media may take, in bit/s of RTP payload, for an estimate of what may be sent on the wire. It is to be called when the estimate or the
// input has changed, several times a second. Steps at times before the last one count as simultaneous with it.
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

// overhead is a share within reason.
func overhead(share float64) float64 {
	if !(share > 0) { // also true for NaN
		return 0
	}
	return min(share, 10)
}

// learn takes note of falls. While the estimate does not fall, the reserve shrinks.
func (b *Budget) learn(seconds, media float64) {
	b.peak = max(media, media+(b.peak-media)*math.Exp(-seconds/peakTime.Seconds()))
	b.reserve *= math.Exp(-seconds / b.cfg.ReserveTime.Seconds())
	if b.peak > 0 {
		b.reserve = min(max(b.reserve, 1-media/b.peak), b.cfg.ReserveMax)
	}
}

// relieve reduces the budget for a moment while a queue is too long or frames had to be dropped. The estimator reduces its estimate as well, but later: the
// sender's own queue is none of its business.
func (b *Budget) relieve(seconds float64, in BudgetInput) {
	b.cut *= math.Exp(-seconds / b.cfg.CutTime.Seconds())
	b.cut += b.cfg.DropCut * float64(max(in.DroppedFrames, 0))
	if excess := in.QueueDelay - b.cfg.QueueMax; excess > 0 {
		// To empty a queue of q seconds within t, the share q/t of the capacity has to be left to it.
		b.cut = max(b.cut, excess.Seconds()/b.cfg.QueueTime.Seconds())
	}
	b.cut = min(b.cut, b.cfg.CutMax)
}
