package netem_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
)

func TestParseProfile(t *testing.T) {
	tests := []struct {
		text     string
		expected netem.Config
	}{
		{"", netem.DefaultConfig()},
		{"  ", netem.DefaultConfig()},
		{"delay=10ms,jitter=2ms,loss=1%,rate=50Mbit", with(func(c *netem.Config) {
			c.Delay, c.Jitter, c.Loss, c.RateBPS = 10*time.Millisecond, 2*time.Millisecond, 0.01, 50_000_000
		})},
		{"loss=0.05, duplicate=2.5%", with(func(c *netem.Config) { c.Loss, c.Duplicate = 0.05, 0.025 })},
		{"burst=1%/5", with(func(c *netem.Config) {
			c.Burst = netem.BurstConfig{Enter: 0.2 * 0.01 / 0.99, Leave: 0.2,
				LossBad: 1}
		})},
		{"burst=50%/1", with(func(c *netem.Config) { c.Burst = netem.BurstConfig{Enter: 1, Leave: 1, LossBad: 1} })},
		{"rate=1.5Gbit,queue=64kB", with(func(c *netem.Config) {
			c.RateBPS, c.QueueBytes, c.QueueDelay = 1_500_000_000,
				64_000, 0
		})},
		{"queue=1MiB", with(func(c *netem.Config) { c.QueueBytes, c.QueueDelay = 1<<20, 0 })},
		{"rate=900kbit,queue=50ms", with(func(c *netem.Config) {
			c.RateBPS, c.QueueDelay = 900_000,
				50*time.Millisecond
		})},
		{"rate=1Mbit,queue=fq", with(func(c *netem.Config) { c.RateBPS, c.Queue = 1_000_000, netem.QueueFQ })},
		{"queue=codel:70ms", with(func(c *netem.Config) {
			c.Queue, c.QueueDelay = netem.QueueCoDel,
				70*time.Millisecond
		})},
		{"queue=fq_codel:1MB", with(func(c *netem.Config) {
			c.Queue, c.QueueBytes, c.QueueDelay = netem.QueueFQCoDel,
				1_000_000, 0
		})},
		{"queue=fifo:9kB", with(func(c *netem.Config) { c.QueueBytes, c.QueueDelay = 9000, 0 })},
		{"rate=8bit,queue=9B", with(func(c *netem.Config) { c.RateBPS, c.QueueBytes, c.QueueDelay = 8, 9, 0 })},
		{"ecn=clear", with(func(c *netem.Config) { c.ECN = netem.ECNClear })},
		{"reorder=1%,reorder_delay=7ms", with(
			func(c *netem.Config) { c.Reorder, c.ReorderDelay = 0.01, 7*time.Millisecond })},
		{"jitter=1ms,jitter_distribution=uniform,jitter_reorders=true", with(func(c *netem.Config) {
			c.Jitter, c.JitterDistribution, c.JitterReorders = time.Millisecond, netem.JitterUniform, true
		})},
	}
	for _, test := range tests {
		got, err := netem.ParseProfile(test.text)
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
		} else if got != test.expected {
			t.Errorf("%q: %+v, expected %+v", test.text, got, test.expected)
		}
	}
}

func TestParseProfileErrors(t *testing.T) {
	tests := []struct {
		text     string
		sentinel error
		parts    []string // expected parts of the message
	}{
		{"delay", netem.ErrProfile, []string{`"delay"`, "KEY=VALUE"}},
		{"delay=10", netem.ErrProfile, []string{"delay", `"10"`, "10ms"}},
		{"delay=10ms,,loss=1%", netem.ErrProfile, []string{`""`, "KEY=VALUE"}},
		{"lose=1%", netem.ErrProfile, []string{`"lose"`, "delay, jitter", "duplicate"}},
		{"loss=1%,loss=2%", netem.ErrProfile, []string{`"loss"`, "twice"}},
		{"loss=one", netem.ErrProfile, []string{"loss", `"one"`, "1%"}},
		{"loss=NaN", netem.ErrProfile, []string{"loss", "NaN"}},
		{"loss=-1%", netem.ErrProfile, []string{"loss", "-1%"}},
		{"loss=%", netem.ErrProfile, []string{"loss"}},
		{"loss=101%", netem.ErrConfig, []string{"loss", "1.01", "0 to 1"}},
		{"delay=-1ms", netem.ErrConfig, []string{"delay", "-1ms", "0 to 1m0s"}},
		{"delay=61s", netem.ErrConfig, []string{"delay", "1m1s"}},
		{"jitter_distribution=pareto", netem.ErrProfile, []string{"pareto", "normal or uniform"}},
		{"jitter_reorders=yes", netem.ErrProfile, []string{"jitter_reorders", "true or false"}},
		{"rate=50", netem.ErrProfile, []string{"rate", "Mbit"}},
		{"rate=0.1bit", netem.ErrProfile, []string{"rate", "0.1bit"}},
		{"rate=1e9bit", netem.ErrProfile, []string{"rate", "1e9bit"}},
		{"rate=99999999999999999999Gbit", netem.ErrProfile, []string{"rate"}},
		{"rate=2000Gbit", netem.ErrConfig, []string{"rate_bps", "2000000000000"}},
		{"rate=1Mbit,queue=0ms", netem.ErrConfig, []string{"queue_bytes", "queue_delay", "rate_bps"}},
		{"queue=64", netem.ErrProfile, []string{"queue", "64kB", "50ms"}},
		{"queue=red", netem.ErrProfile, []string{"queue", `"red"`, "codel", "fq_codel"}},
		{"queue=fq:", netem.ErrProfile, []string{"queue", `"fq:"`, "fq:50ms"}},
		{"ecn=bleach", netem.ErrProfile, []string{"ecn", `"bleach"`, "keep, clear, ect0, mark or drop"}},
		{"queue=64kB:fq", netem.ErrProfile, []string{"queue"}},
		{"burst=1%", netem.ErrProfile, []string{"burst", "1%/5"}},
		{"burst=1%/0.5", netem.ErrProfile, []string{"burst", "0.5"}},
		{"burst=90%/2", netem.ErrProfile, []string{"burst", "90%/2"}},
		{"reorder=1%,reorder_delay=0s", netem.ErrConfig, []string{"reorder_delay", "reorder"}},
	}
	for _, test := range tests {
		cfg, err := netem.ParseProfile(test.text)
		if !errors.Is(err, test.sentinel) {
			t.Errorf("%q: error %v, expected %v", test.text, err, test.sentinel)
			continue
		}
		if cfg != (netem.Config{}) {
			t.Errorf("%q: configuration %+v beside an error", test.text, cfg)
		}
		for _, part := range test.parts {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: error %q does not name %q", test.text, err, part)
			}
		}
	}
}

func TestValidate(t *testing.T) {
	tests := []struct {
		config netem.Config
		part   string // of the message; empty = valid
	}{
		{netem.Config{}, ""},
		{netem.DefaultConfig(), ""},
		{netem.Config{Delay: time.Second, Loss: 1, QueueBytes: 1, RateBPS: 1}, ""},
		{netem.Config{Jitter: 1}, "jitter_distribution"},
		{netem.Config{JitterDistribution: "gauss"}, `jitter_distribution is "gauss"`},
		{netem.Config{Loss: math.NaN()}, "loss is NaN"},
		{netem.Config{RateBPS: -1, QueueBytes: 1}, "rate_bps is -1"},
		{netem.Config{RateBPS: 1}, "queue_bytes and queue_delay are 0"},
		{netem.Config{QueueBytes: -1}, "queue_bytes is -1"},
		{netem.Config{Queue: "red"}, `queue is "red", expected one of fifo, codel, fq, fq_codel`},
		{netem.Config{QueueDelay: -1}, "queue_delay is -1ns"},
		{netem.Config{ECN: "bleach"}, `ecn is "bleach", expected one of keep, clear, ect0, mark, drop`},
		{netem.Config{Reorder: 0.1}, "reorder_delay is 0"},
		{netem.Config{Burst: netem.BurstConfig{Enter: 0.1, LossBad: 1}}, "burst.leave is 0"},
		{netem.Config{Burst: netem.BurstConfig{Enter: 0.1, Leave: 0.1}}, "burst.loss_bad is 0"},
		{netem.Config{Burst: netem.BurstConfig{Enter: 1.1, Leave: 0.1}}, "burst.enter is 1.1"},
		{netem.Config{Duplicate: -0.1}, "duplicate is -0.1"},
	}
	for _, test := range tests {
		err := test.config.Validate()
		switch {
		case test.part == "" && err != nil:
			t.Errorf("%+v: %v", test.config, err)
		case test.part != "" && (!errors.Is(err, netem.ErrConfig) || !strings.Contains(err.Error(), test.part)):
			t.Errorf("%+v: error %v, expected ErrConfig with %q", test.config, err, test.part)
		}
		if _, linkErr := netem.NewLink(test.config, 1, nil); (linkErr == nil) != (err == nil) {
			t.Errorf("%+v: NewLink returned %v, Validate %v", test.config, linkErr, err)
		}
	}
	for _, wrong := range [][2]float64{{0.1, 0}, {0.1, math.NaN()}, {-0.1, 2}, {0.7, 2}, {math.NaN(), 2}, {1, 1e9},
		{0.5, math.Inf(1)}} {
		if b, err := netem.BurstLoss(wrong[0], wrong[1]); !errors.Is(err, netem.ErrConfig) {
			t.Errorf("BurstLoss(%g, %g) = %+v, %v; expected ErrConfig", wrong[0], wrong[1], b, err)
		}
	}
}

// FuzzParseProfile expects for any text an error that wraps one of the two sentinels, or a configuration for a working
// link.
func FuzzParseProfile(f *testing.F) {
	for _, text := range []string{
		"", "delay=10ms,jitter=2ms,loss=1%,rate=50Mbit", "burst=1%/5", "burst=50%/1", "rate=1Gbit,queue=64kB",
		"queue=50ms,rate=8bit", "reorder=1%,reorder_delay=5ms",
		"jitter=1ms,jitter_distribution=uniform,jitter_reorders=true", "loss=100%", "duplicate=1", "delay=,", "=",
		"loss=1..2%", "burst=0/1",
		"rate=1Mbit,queue=codel", "rate=1Mbit,queue=fq:9B", "rate=1Mbit,queue=fq_codel:5ms", "rate=1000Gbit,queue=1m",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cfg, err := netem.ParseProfile(text)
		if err != nil {
			if !errors.Is(err, netem.ErrProfile) && !errors.Is(err, netem.ErrConfig) {
				t.Fatalf("error %v wraps no sentinel", err)
			}
			return
		}
		link, err := netem.NewLink(cfg, 1, nil)
		if err != nil {
			t.Fatalf("%q was parsed, but makes no link: %v", text, err)
		}
		for range 10 {
			link.Send(&netem.Packet{Size: 1200}, epoch)
		}
		drain(link)
		checkConservation(t, link.Stats())
	})
}
