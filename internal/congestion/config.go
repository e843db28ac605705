package congestion

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrConfig is wrapped with the key that is wrong and what was expected.
var ErrConfig = errors.New("invalid congestion configuration")

// Limits bound an estimate.
type Limits struct {
	// Min and Max are the least and the largest estimate, Start is the first one. In bit/s.
	Min, Start, Max Bitrate
}

// Config tunes an estimator.
type Config struct {
	Profile string  `yaml:"profile" help:"named limits that hold where min_bps, start_bps or max_bps is 0: default or paper000"`
	Min     Bitrate `yaml:"min_bps" help:"least estimate in bit/s, also without feedback; 0 is the profile's"`
	Start   Bitrate `yaml:"start_bps" help:"first estimate in bit/s; 0 is the profile's"`
	Max     Bitrate `yaml:"max_bps" help:"largest estimate in bit/s; 0 is the profile's"`

	// Delay tunes the detection of queues.
	Delay DelayConfig `yaml:"-"`
	// Rate tunes the rise and fall of the estimate.
	Rate RateConfig `yaml:"-"`
	// Loss tunes the estimate from losses.
	Loss  LossConfig  `yaml:"-"`
	Probe ProbeConfig `yaml:"probe" help:"short trains of packets above the estimate"`
	// Silence tunes the reaction to missing feedback.
	Silence SilenceConfig `yaml:"-"`
}

// DelayConfig tunes the detection of queues.
type DelayConfig struct {
	// GroupInterval: packets sent within this time form one group.
	GroupInterval time.Duration `yaml:"-"`
	// BurstGap: packets that arrive within this time of each other, faster than they were sent, form one group.
	BurstGap time.Duration `yaml:"-"`
	// BurstMax is the longest group that such arrivals form.
	BurstMax time.Duration `yaml:"-"`
	// QueueMax is the standing queue from which the path counts as overused; with 0 only the trend decides.
	QueueMax time.Duration `yaml:"-"`
}

// RateConfig tunes the rise and fall of the estimate.
type RateConfig struct {
	// Backoff is the share of the acknowledged rate that remains after overuse, 0 to 1.
	Backoff float64 `yaml:"-"`
	// Growth is the growth per second while the capacity is unknown, as a share of the estimate.
	Growth float64 `yaml:"-"`
	// GrowthNear is the growth per second near the capacity, as a share of the rate at which bursts arrive.
	GrowthNear float64 `yaml:"-"`
	// Headroom bounds the estimate without a probe, as a multiple of the acknowledged rate.
	Headroom float64 `yaml:"-"`
	// UnusedShare is the share of the estimate below which the sender counts as application-limited, 0 to 1.
	UnusedShare float64 `yaml:"-"`
	// DrainTime is the time in which a queue is to be emptied.
	DrainTime time.Duration `yaml:"-"`
}

// LossConfig tunes the estimate from losses.
type LossConfig struct {
	// Interval is the shortest time over which losses are counted together.
	Interval time.Duration `yaml:"-"`
	// InherentMax is the largest loss ratio that is attributed to the path and not to the rate, 0 to 1.
	InherentMax float64 `yaml:"-"`
	// Bias is the preference for higher rates: about the loss ratio by congestion that is accepted.
	Bias float64 `yaml:"-"`
}

// ProbeConfig tunes probing.
type ProbeConfig struct {
	Enabled bool `yaml:"enabled" help:"whether rates above the estimate are probed"`
	// Duration is the length of a probe at its rate.
	Duration time.Duration `yaml:"-"`
	// LongDuration is the length of a probe while the sender uses its estimate. It exceeds a frame interval, so that
	// other senders at the bottleneck show.
	LongDuration time.Duration `yaml:"-"`
	// MinPackets is the least number of packets of a probe.
	MinPackets int `yaml:"-"`
	// IntervalMin is the time between two probes above the estimate. It doubles whenever a probe finds nothing.
	IntervalMin time.Duration `yaml:"-"`
	// IntervalMax bounds that time. Probes for more than is wanted wait for up to 5 minutes.
	IntervalMax time.Duration `yaml:"-"`
	Ample       float64       `yaml:"ample" help:"estimate up to which a sender that uses little of it probes, as a multiple of what is wanted: with 16 a frame leaves in a sixteenth of its interval; up to 120 Mbit/s, more only where that is wanted; 1 is for what is wanted only"`
}

// SilenceConfig tunes what happens without feedback.
type SilenceConfig struct {
	// Timeout is the time beyond a round trip after which packets without feedback reduce the estimate.
	Timeout time.Duration `yaml:"-"`
	// Interval is the time between two reductions.
	Interval time.Duration `yaml:"-"`
	// Backoff is the share of the estimate that remains after a reduction, 0 to 1.
	Backoff float64 `yaml:"-"`
}

// profiles are the named limits.
var profiles = map[string]Limits{
	// The range that the estimator is tested in, beginning where a coarse cloud fits.
	"default": {Min: 500e3, Start: 2e6, Max: 1000e6},
	// A point cloud at its lowest and its highest quality: what the published systems that set their controller so start from.
	"paper000": {Min: 12.5e6, Start: 12.5e6, Max: 90e6},
}

// Profile returns the limits of that name.
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

// DefaultConfig returns the default settings.
func DefaultConfig() Config {
	return Config{
		Profile: "default",
		Delay: DelayConfig{
			// The three are libwebrtc's.
			GroupInterval: 5 * time.Millisecond,
			BurstGap:      5 * time.Millisecond,
			BurstMax:      100 * time.Millisecond,
			QueueMax:      10 * time.Millisecond,
		},
		Rate: RateConfig{
			// Backoff, growth and headroom are the draft's and libwebrtc's.
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
			// Feedback comes every 25 to 250 ms: half a second is two reports at least that are missing.
			Timeout:  500 * time.Millisecond,
			Interval: 300 * time.Millisecond,
			Backoff:  0.7,
		},
	}
}

// Limits returns the limits that are configured. It is for settings that Validate has passed; an unknown profile gives that of the default.
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

// leastRate is what feedback and audio take. An estimate below it is of no use, and rates of zero would make times infinite.
const leastRate Bitrate = 30_000

// Or returns limits in which what is 0 is taken from others, made consistent: an explicit largest estimate also lowers the least and the first one, and none is
// below what feedback and audio take.
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

// Validate reports the first limit that is wrong.
func (l Limits) Validate() error {
	switch {
	case l.Min < leastRate:
		return fmt.Errorf("%w: min_bps is %d, expected %d or more", ErrConfig, l.Min, leastRate)
	case l.Max < l.Min:
		return fmt.Errorf("%w: max_bps is %d, expected min_bps (%d) or more", ErrConfig, l.Max, l.Min)
	case l.Start < l.Min || l.Start > l.Max:
		return fmt.Errorf("%w: start_bps is %d, expected min_bps (%d) to max_bps (%d)", ErrConfig, l.Start, l.Min, l.Max)
	}
	return nil
}

// Validate reports the first key that is wrong.
func (c Config) Validate() error {
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
