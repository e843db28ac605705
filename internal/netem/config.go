package netem

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrConfig is the sentinel of invalid link parameters. The wrapping error has the key and the expected value.
var ErrConfig = errors.New("invalid link")

// The distributions of jitter.
const (
	// JitterNormal adds a normally distributed time with mean 0 and standard deviation Config.Jitter.
	JitterNormal = "normal"
	// JitterUniform adds a uniformly distributed time in ±Config.Jitter.
	JitterUniform = "uniform"
)

// The disciplines of the queue at a bottleneck.
const (
	// QueueFIFO is DropTail: first in, first out, with drops at the tail.
	QueueFIFO = "fifo"
	// QueueCoDel is CoDel.
	QueueCoDel = "codel"
	// QueueFQ is FairQueue: flows are served in turn.
	QueueFQ = "fq"
	// QueueFQCoDel is QueueFQ with CoDel for every flow.
	QueueFQCoDel = "fq_codel"
	// QueueDualPI2 is DualPI2, with a separate queue for L4S flows.
	QueueDualPI2 = "dualpi2"
	// QueuePaper000 is L4SPriority: L4S flows are served first, and marked and dropped by their rate.
	QueuePaper000 = "paper000"
)

// The treatments of the ECN field by a link, from the failures of paths that RFC 9331 (sections 4.3 and 5.1) and RFC
// 8311 expect. Packets are treated before they reach the queue.
const (
	// ECNKeep leaves the field unchanged.
	ECNKeep = "keep"
	// ECNClear sets the field of every packet to Not-ECT.
	ECNClear = "clear"
	// ECNECT0 rewrites ECT(1) to ECT(0).
	ECNECT0 = "ect0"
	// ECNMark sets the field of every ECN-capable packet to CE.
	ECNMark = "mark"
	// ECNDrop drops ECN-capable packets, marked ones included. Other packets pass.
	ECNDrop = "drop"
)

var ecnTreatments = []string{ECNKeep, ECNClear, ECNECT0, ECNMark, ECNDrop}

var disciplines = []string{QueueFIFO, QueueCoDel, QueueFQ, QueueFQCoDel, QueueDualPI2, QueuePaper000}

const (
	maxDelay = time.Minute // for every delay: a packet delayed longer is as good as lost
	// 1 Tbit/s: a packet of 1,200 bytes takes 9.6 ns, and the clock counts whole nanoseconds
	maxRateBPS = 1_000_000_000_000
)

// Config describes one direction of a link. The zero value is a perfect link: no delay, no loss, no rate limit. The sum
// of delay and jitter is at least 0. Without JitterReorders a late packet delays the packets behind it. QueueBytes and
// QueueDelay do not include the packet in transmission; the smaller of both limits applies.
type Config struct {
	Delay              time.Duration `yaml:"delay" help:"one-way propagation delay"`
	Jitter             time.Duration `yaml:"jitter" help:"standard deviation (normal) or half width (uniform)"`
	JitterDistribution string        `yaml:"jitter_distribution" help:"normal or uniform"`
	JitterReorders     bool          `yaml:"jitter_reorders" help:"let jitter reorder packets"`
	Loss               float64       `yaml:"loss" help:"share of packets lost independently at random, 0 to 1"`
	Burst              BurstConfig   `yaml:"burst"`
	RateBPS            int           `yaml:"rate_bps" help:"bottleneck rate in bit/s, headers included; 0 = unlimited"`
	Queue              string        `yaml:"queue" help:"fifo (or empty), codel, fq, fq_codel, dualpi2 or paper000"`
	QueueBytes         int           `yaml:"queue_bytes" help:"queue limit in bytes; 0 = none"`
	QueueDelay         time.Duration `yaml:"queue_delay" help:"queue limit as a time at the bottleneck rate; 0 = none"`
	Reorder            float64       `yaml:"reorder" help:"share of packets held back by reorder_delay, 0 to 1"`
	ReorderDelay       time.Duration `yaml:"reorder_delay" help:"extra delay of a packet that is held back"`
	ECN                string        `yaml:"ecn" help:"keep (or empty), clear, ect0, mark or drop: treatment of ECN"`
	Duplicate          float64       `yaml:"duplicate" help:"share of packets that arrive twice, 0 to 1"`
}

// BurstConfig describes burst loss by the Gilbert–Elliott model: a chain with a good and a bad state that makes one
// step per offered packet. A packet is lost with the probability of the current state; then the chain steps. With Enter
// = p, Leave = r, LossBad = 1-h and LossGood = 1-k of the usual notation:
//
//	share of packets in the bad state  π = p / (p + r)
//	mean loss                          π·LossBad + (1-π)·LossGood
//	mean duration of the bad state     1/r packets, which with LossBad = 1 and LossGood = 0 is the mean length
//	                                   of a burst of losses
//
// BurstLoss computes Enter and Leave from mean loss and mean length. The chain starts in the good state.
type BurstConfig struct {
	Enter    float64 `yaml:"enter" help:"probability per packet of entering the bad state; 0 = no burst loss"`
	Leave    float64 `yaml:"leave" help:"probability per packet of leaving it; 1/leave is the mean length of a burst"`
	LossBad  float64 `yaml:"loss_bad" help:"probability of loss in the bad state"`
	LossGood float64 `yaml:"loss_good" help:"probability of loss in the good state"`
}

// DefaultConfig returns a perfect link, with useful values for parameters that apply only if an effect is enabled.
func DefaultConfig() Config {
	return Config{
		JitterDistribution: JitterNormal,
		Queue:              QueueFIFO,
		ECN:                ECNKeep,
		// When Enter is set, losses are bursts of five on average.
		Burst: BurstConfig{Leave: 0.2, LossBad: 1},
		// 100 ms is the queue of a common access router: three frames at 30 fps.
		QueueDelay: 100 * time.Millisecond,
		// In 5 ms about 10 packets of 1,200 bytes overtake at 20 Mbit/s, more than TCP's loss threshold of three.
		ReorderDelay: 5 * time.Millisecond,
	}
}

// Overtakes reports whether the queue may reorder packets of different flows.
func (c *Config) Overtakes() bool {
	return c.Queue != "" && c.Queue != QueueFIFO && c.Queue != QueueCoDel
}

// BurstLoss returns the parameters that lose the given share of packets, 0 ≤ loss < 1, in bursts of the given mean
// length in packets, at least 1. The share must be at most length / (length + 1), because at least one packet passes
// between two bursts. Errors wrap ErrConfig.
func BurstLoss(loss, length float64) (BurstConfig, error) {
	if !(length >= 1) {
		return BurstConfig{}, fmt.Errorf("%w: mean length of a burst is %g packets, expected 1 or more",
			ErrConfig, length)
	}
	if limit := length / (length + 1); !(loss >= 0 && loss <= limit) {
		return BurstConfig{}, fmt.Errorf("%w: mean loss in bursts of %g packets is %g, expected 0 to %.4g", ErrConfig,
			length, loss, limit)
	}
	// From loss = p / (p + r) follows p = r · loss / (1 - loss). The minimum corrects rounding at the limit, where p is
	// 1.
	leave := 1 / length
	return BurstConfig{Enter: min(leave*loss/(1-loss), 1), Leave: leave, LossBad: 1}, nil
}

// Validate reports the first invalid parameter. The error wraps ErrConfig.
func (c *Config) Validate() error {
	for _, d := range []struct {
		key   string
		value time.Duration
	}{
		{"delay", c.Delay}, {"jitter", c.Jitter}, {"queue_delay", c.QueueDelay}, {"reorder_delay", c.ReorderDelay},
	} {
		if d.value < 0 || d.value > maxDelay {
			return fmt.Errorf("%w: %s is %v, expected 0 to %v", ErrConfig, d.key, d.value, maxDelay)
		}
	}
	for _, s := range []struct {
		key   string
		value float64
	}{
		{"loss", c.Loss}, {"burst.enter", c.Burst.Enter}, {"burst.leave", c.Burst.Leave},
		{"burst.loss_bad", c.Burst.LossBad},
		{"burst.loss_good", c.Burst.LossGood}, {"reorder", c.Reorder}, {"duplicate", c.Duplicate},
	} {
		if !(s.value >= 0 && s.value <= 1) { // written so that NaN fails
			return fmt.Errorf("%w: %s is %g, expected 0 to 1", ErrConfig, s.key, s.value)
		}
	}
	if c.Queue != "" && !slices.Contains(disciplines, c.Queue) {
		return fmt.Errorf("%w: queue is %q, expected one of %s", ErrConfig, c.Queue, strings.Join(disciplines, ", "))
	}
	if c.ECN != "" && !slices.Contains(ecnTreatments, c.ECN) {
		return fmt.Errorf("%w: ecn is %q, expected one of %s", ErrConfig, c.ECN, strings.Join(ecnTreatments, ", "))
	}
	return c.validateCombinations()
}

// validateCombinations reports parameters that contradict, or have no effect because of, another one.
func (c *Config) validateCombinations() error {
	known := c.JitterDistribution == JitterNormal || c.JitterDistribution == JitterUniform
	switch {
	case !known && (c.JitterDistribution != "" || c.Jitter > 0):
		return fmt.Errorf("%w: jitter_distribution is %q, expected %s or %s", ErrConfig, c.JitterDistribution,
			JitterNormal, JitterUniform)
	case c.Burst.Enter > 0 && c.Burst.Leave == 0:
		return fmt.Errorf("%w: burst.leave is 0, expected above 0 because burst.enter is set: the bad state would "+
			"not end",
			ErrConfig)
	case c.Burst.Enter > 0 && c.Burst.LossBad <= c.Burst.LossGood:
		return fmt.Errorf("%w: burst.loss_bad is %g, expected more than burst.loss_good (%g)", ErrConfig,
			c.Burst.LossBad, c.Burst.LossGood)
	case c.RateBPS < 0 || c.RateBPS > maxRateBPS:
		return fmt.Errorf("%w: rate_bps is %d, expected 0 to %d", ErrConfig, c.RateBPS, maxRateBPS)
	case c.QueueBytes < 0:
		return fmt.Errorf("%w: queue_bytes is %d, expected 0 or more", ErrConfig, c.QueueBytes)
	case c.RateBPS > 0 && c.QueueBytes == 0 && c.QueueDelay == 0:
		return fmt.Errorf("%w: queue_bytes and queue_delay are 0, expected a limit because rate_bps is set", ErrConfig)
	case c.Reorder > 0 && c.ReorderDelay == 0:
		return fmt.Errorf("%w: reorder_delay is 0, expected above 0 because reorder is set", ErrConfig)
	}
	return nil
}
