package congestion

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrConfig is the sentinel of configuration errors. The wrapping error names the key, its value and the expected
// values.
var ErrConfig = errors.New("invalid congestion configuration")

// The values of Config.Controller.
const (
	// ControllerAuto is L4S for receivers that report the ECN field of packets, and GCC for others.
	ControllerAuto = "auto"
	// ControllerGCC is GCC, with packets as Not-ECT.
	ControllerGCC = "gcc"
	// ControllerPaper000 is the controller of paper 000, and GCC for receivers that do not report the ECN field.
	ControllerPaper000 = "paper000"
)

// Limits are the bounds of an estimate.
type Limits struct {
	// Min and Max bound the estimate, Start is its initial value. In bit/s.
	Min, Start, Max Bitrate
}

// Config is the configuration of an estimator.
type Config struct {
	Controller string `yaml:"controller" help:"congestion control: auto (L4S if reports have ECN), gcc or paper000"`

	Profile string  `yaml:"profile" help:"limits used if min_bps, start_bps or max_bps is 0: default or paper000"`
	Min     Bitrate `yaml:"min_bps" help:"minimum estimate in bit/s, also without feedback; 0 is the profile's"`
	Start   Bitrate `yaml:"start_bps" help:"initial estimate in bit/s; 0 is the profile's"`
	Max     Bitrate `yaml:"max_bps" help:"maximum estimate in bit/s; 0 is the profile's"`

	// Delay configures the detection of queues.
	Delay DelayConfig `yaml:"-"`
	// Rate configures the increase and decrease of the estimate.
	Rate RateConfig `yaml:"-"`
	// Loss configures the loss-based estimate.
	Loss LossConfig `yaml:"-"`
	// Probe configures probes, short trains of packets above the estimate.
	Probe ProbeConfig `yaml:"-"`
	// Silence configures the reaction to missing feedback.
	Silence SilenceConfig `yaml:"-"`
}

// DelayConfig configures the detection of queues.
type DelayConfig struct {
	// GroupInterval is the maximum duration of a group: packets sent within this time form one group.
	GroupInterval time.Duration `yaml:"-"`
	// BurstGap: packets that arrive within this time of each other, and closer together than they were sent, form one
	// group.
	BurstGap time.Duration `yaml:"-"`
	// BurstMax bounds the duration of a group formed by BurstGap.
	BurstMax time.Duration `yaml:"-"`
	// QueueMax is the standing queue above which the path counts as overused. If it is 0, only the trend decides.
	QueueMax time.Duration `yaml:"-"`
}

// RateConfig configures the increase and decrease of the estimate.
type RateConfig struct {
	// Backoff is the share of the acknowledged rate that remains after overuse, 0 to 1.
	Backoff float64 `yaml:"-"`
	// Growth is the growth per second while the capacity is unknown, as a share of the estimate.
	Growth float64 `yaml:"-"`
	// GrowthNear is the growth per second near the capacity, as a share of the burst rate.
	GrowthNear float64 `yaml:"-"`
	// Headroom bounds the growth of the estimate without a probe, as a multiple of the acknowledged rate.
	Headroom float64 `yaml:"-"`
	// UnusedShare is the share of the estimate below which the sender counts as application-limited, 0 to 1.
	UnusedShare float64 `yaml:"-"`
	// DrainTime is the target time for draining a queue.
	DrainTime time.Duration `yaml:"-"`
}

// LossConfig configures the loss-based estimate.
type LossConfig struct {
	// Interval is the minimum duration of one loss observation.
	Interval time.Duration `yaml:"-"`
	// InherentMax is the largest loss ratio that is attributed to the path and not to the rate, 0 to 1.
	InherentMax float64 `yaml:"-"`
	// Bias is the preference for higher rates: approximately the congestion loss ratio that is accepted.
	Bias float64 `yaml:"-"`
}

// ProbeConfig configures probing.
type ProbeConfig struct {
	// Enabled permits probes. Without probes the estimate grows by what the sender sends.
	Enabled bool
	// Duration is the length of a probe.
	Duration time.Duration
	// LongDuration is the length of a probe while the sender uses its estimate. It exceeds a frame interval, so that
	// the probe meets the traffic of other senders at the bottleneck.
	LongDuration time.Duration
	// MinPackets is the minimum number of packets of a probe.
	MinPackets int
	// IntervalMin is the time between two probes above the estimate. The interval doubles after each probe that finds
	// no more capacity.
	IntervalMin time.Duration
	// IntervalMax bounds the interval. Probes for more than the wanted rate have an interval of up to 5 minutes.
	IntervalMax time.Duration
	// Ample is the largest multiple of the wanted rate that is probed for headroom.
	Ample float64
}

// SilenceConfig configures the reaction to missing feedback.
type SilenceConfig struct {
	// Timeout is the time beyond a round trip after which unreported packets reduce the estimate.
	Timeout time.Duration `yaml:"-"`
	// Interval is the time between two reductions.
	Interval time.Duration `yaml:"-"`
	// Backoff is the share of the estimate that remains after a reduction, 0 to 1.
	Backoff float64 `yaml:"-"`
}

// profiles are the named limits.
var profiles = map[string]Limits{
	// The range in which the estimator is tested; it starts at the rate of a coarse point cloud.
	"default": {Min: 500e3, Start: 2e6, Max: 1000e6},
	// A point cloud at its lowest and its highest quality: the settings of published systems that configure their
	// controller in this way.
	"paper000": {Min: 12.5e6, Start: 12.5e6, Max: 90e6},
}

// Profile returns the limits of a profile.
func Profile(name string) (Limits, error) {
	limits, ok := profiles[name]
	if !ok {
		names := make([]string, 0, len(profiles))
		for known := range profiles {
			names = append(names, known)
		}
		slices.Sort(names)
		return Limits{}, fmt.Errorf("%w: profile is %q, expected one of %s", ErrConfig, name, strings.Join(names, ", "))
	}
	return limits, nil
}

// DefaultConfig returns the default configuration.
func DefaultConfig() Config {
	return Config{
		Controller: ControllerAuto,
		Profile:    "default",
		Delay: DelayConfig{
			// The values of libwebrtc.
			GroupInterval: 5 * time.Millisecond,
			BurstGap:      5 * time.Millisecond,
			BurstMax:      100 * time.Millisecond,
			QueueMax:      10 * time.Millisecond,
		},
		Rate: RateConfig{
			// Backoff, growth and headroom are the values of the draft and of libwebrtc.
			Backoff:     0.85,
			Growth:      0.08,
			GrowthNear:  0.03,
			Headroom:    1.5,
			UnusedShare: 0.65,
			DrainTime:   500 * time.Millisecond,
		},
		Loss: LossConfig{
			Interval:    250 * time.Millisecond,
			InherentMax: 0.10,
			Bias:        0.2,
		},
		Probe: ProbeConfig{
			Enabled:      true,
			Duration:     15 * time.Millisecond,
			LongDuration: 40 * time.Millisecond,
			MinPackets:   5,
			IntervalMin:  3 * time.Second,
			IntervalMax:  20 * time.Second,
			Ample:        16,
		},
		Silence: SilenceConfig{
			// Feedback is sent every 25 to 250 ms, so within 500 ms at least two reports are missing.
			Timeout:  500 * time.Millisecond,
			Interval: 300 * time.Millisecond,
			Backoff:  0.7,
		},
	}
}

// Algorithm returns the estimator for a receiver of RTP; reportsECN is set if the receiver's reports have the ECN field
// of each packet (RFC 8888).
func (c Config) Algorithm(reportsECN bool) Algorithm {
	switch {
	case reportsECN && c.Controller == ControllerAuto:
		return L4S
	case reportsECN && c.Controller == ControllerPaper000:
		return Paper000
	}
	return GCC
}

// Limits returns the configured limits. The configuration must be valid; for an unknown profile, Limits uses "default".
func (c Config) Limits() Limits {
	limits, err := Profile(c.Profile)
	if err != nil {
		limits = profiles["default"]
	}
	if c.Min != 0 {
		limits.Min = c.Min
	}
	if c.Start != 0 {
		limits.Start = c.Start
	}
	if c.Max != 0 {
		limits.Max = c.Max
	}
	return limits
}

// leastRate, in bit/s, is the rate of feedback and audio. A lower estimate is of no use, and a rate of zero would make
// times infinite.
const leastRate Bitrate = 30_000

// Or returns the limits with zero values replaced by those of others, made consistent. An explicit Max also lowers Min
// and Start. No result is below leastRate.
func (l Limits) Or(others Limits) Limits {
	if l.Max == 0 {
		l.Max = max(others.Max, l.Min)
	}
	l.Max = max(l.Max, leastRate)
	if l.Min == 0 {
		l.Min = others.Min
	}
	l.Min = min(max(l.Min, leastRate), l.Max)
	if l.Start == 0 {
		l.Start = others.Start
	}
	l.Start = min(max(l.Start, l.Min), l.Max)
	return l
}

// Validate reports the first invalid limit.
func (l Limits) Validate() error {
	switch {
	case l.Min < leastRate:
		return fmt.Errorf("%w: min_bps is %d, expected %d or more", ErrConfig, l.Min, leastRate)
	case l.Max < l.Min:
		return fmt.Errorf("%w: max_bps is %d, expected min_bps (%d) or more", ErrConfig, l.Max, l.Min)
	case l.Start < l.Min || l.Start > l.Max:
		return fmt.Errorf("%w: start_bps is %d, expected min_bps (%d) to max_bps (%d)", ErrConfig, l.Start,
			l.Min, l.Max)
	}
	return nil
}

// Validate reports the first invalid key.
func (c Config) Validate() error {
	switch c.Controller {
	case ControllerAuto, ControllerGCC, ControllerPaper000:
	default:
		return fmt.Errorf("%w: controller is %q, expected %s, %s or %s", ErrConfig, c.Controller, ControllerAuto,
			ControllerGCC, ControllerPaper000)
	}
	if _, err := Profile(c.Profile); err != nil {
		return err
	}
	if err := c.Limits().Validate(); err != nil {
		return err
	}
	for _, d := range []struct {
		key          string
		value, least time.Duration
	}{
		{"delay.group_interval", c.Delay.GroupInterval, time.Millisecond},
		{"delay.burst_gap", c.Delay.BurstGap, 0},
		{"delay.burst_max", c.Delay.BurstMax, c.Delay.GroupInterval},
		{"delay.queue_max", c.Delay.QueueMax, 0},
		{"rate.drain_time", c.Rate.DrainTime, 100 * time.Millisecond},
		{"loss.interval", c.Loss.Interval, 50 * time.Millisecond},
		{"probe.duration", c.Probe.Duration, 5 * time.Millisecond},
		{"probe.long_duration", c.Probe.LongDuration, c.Probe.Duration},
		{"probe.interval_min", c.Probe.IntervalMin, 500 * time.Millisecond},
		{"probe.interval_max", c.Probe.IntervalMax, c.Probe.IntervalMin},
		{"silence.timeout", c.Silence.Timeout, 100 * time.Millisecond},
		{"silence.interval", c.Silence.Interval, 50 * time.Millisecond},
	} {
		if d.value < d.least {
			return fmt.Errorf("%w: %s is %v, expected %v or more", ErrConfig, d.key, d.value, d.least)
		}
	}
	for _, f := range []struct {
		key                   string
		value, least, largest float64
	}{
		{"rate.backoff", c.Rate.Backoff, 0.5, 0.99},
		{"rate.growth", c.Rate.Growth, 0.001, 1},
		{"rate.growth_near", c.Rate.GrowthNear, 0.001, 1},
		{"rate.headroom", c.Rate.Headroom, 1.1, 10},
		{"rate.unused_share", c.Rate.UnusedShare, 0.1, 0.95},
		{"loss.inherent_max", c.Loss.InherentMax, 0.001, 0.5},
		{"loss.bias", c.Loss.Bias, 0, 10},
		{"probe.min_packets", float64(c.Probe.MinPackets), 2, 1000},
		{"probe.ample", c.Probe.Ample, 1, 100},
		{"silence.backoff", c.Silence.Backoff, 0.1, 0.99},
	} {
		if !(f.value >= f.least && f.value <= f.largest) {
			return fmt.Errorf("%w: %s is %v, expected %v to %v", ErrConfig, f.key, f.value, f.least, f.largest)
		}
	}
	return nil
}
