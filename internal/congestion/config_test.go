package congestion

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestProfiles(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Profile = "paper000"
	if got, want := cfg.Limits(), (Limits{Min: 12.5e6, Start: 12.5e6, Max: 90e6}); got != want {
		t.Errorf("paper000 is %v, expected %v", got, want)
	}
	cfg.Max = 50e6
	if got, want := cfg.Limits(), (Limits{Min: 12.5e6, Start: 12.5e6, Max: 50e6}); got != want {
		t.Errorf("paper000 up to 50 Mbit/s is %v, expected %v", got, want)
	}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
	for name := range profiles {
		limits, err := Profile(name)
		if err != nil || limits.Validate() != nil {
			t.Errorf("profile %s: %v, %v, %v", name, limits, err, limits.Validate())
		}
	}
	if _, err := Profile("paper001"); !errors.Is(err, ErrConfig) ||
		!strings.Contains(err.Error(), "default, paper000") {
		t.Errorf("unknown profile: %v", err)
	}
}

func TestValidateNamesTheKey(t *testing.T) {
	for key, change := range map[string]func(*Config){
		"controller":           func(c *Config) { c.Controller = "x" },
		"profile":              func(c *Config) { c.Profile = "x" },
		"min_bps":              func(c *Config) { c.Min = 1 },
		"max_bps":              func(c *Config) { c.Max = 1000 },
		"start_bps":            func(c *Config) { c.Start = 2000e6 },
		"delay.group_interval": func(c *Config) { c.Delay.GroupInterval = 0 },
		"delay.burst_max":      func(c *Config) { c.Delay.BurstMax = time.Millisecond },
		"delay.queue_max":      func(c *Config) { c.Delay.QueueMax = -1 },
		"rate.backoff":         func(c *Config) { c.Rate.Backoff = 1 },
		"rate.drain_time":      func(c *Config) { c.Rate.DrainTime = 0 },
		"loss.inherent_max":    func(c *Config) { c.Loss.InherentMax = 1 },
		"probe.interval_max":   func(c *Config) { c.Probe.IntervalMax = time.Second },
		"probe.min_packets":    func(c *Config) { c.Probe.MinPackets = 0 },
		"silence.timeout":      func(c *Config) { c.Silence.Timeout = 0 },
	} {
		cfg := DefaultConfig()
		change(&cfg)
		if err := cfg.Validate(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), key+" is ") {
			t.Errorf("%s: got %v", key, err)
		}
	}
}

func TestAlgorithm(t *testing.T) {
	for _, c := range []struct {
		controller string
		reportsECN bool
		want       Algorithm
	}{
		{ControllerAuto, true, L4S}, {ControllerAuto, false, GCC}, {ControllerGCC, true, GCC},
		{ControllerPaper000, true, Paper000}, {ControllerPaper000, false, GCC},
	} {
		cfg := DefaultConfig()
		cfg.Controller = c.controller
		if got := cfg.Algorithm(c.reportsECN); got != c.want {
			t.Errorf("%s, reports with ECN %v: %v, expected %v", c.controller, c.reportsECN, got, c.want)
		}
	}
}
