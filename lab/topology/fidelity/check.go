package fidelity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/netem/router"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
)

// The targets.
const (
	delayErrorP95 = 0.5 // ms
	rateError     = 2.0 // %
	// sustainedMbps is the rate that must pass for a longer time in packets of 1,200 bytes, on a link with a higher
	// rate.
	sustainedMbps = 400
	// sustainedLink is the rate of the link of sustained traffic, which uses 80 % of the rate, as the sweeps do.
	sustainedLink = 500
	// attempts is the largest number of measurements: a measurement is repeated only if the machine was disturbed or
	// the sender was delayed.
	attempts = 4
)

// cell is a link to be measured.
type cell struct {
	delay time.Duration
	mbps  int
}

// String returns the cell's name in lines.
func (c cell) String() string { return fmt.Sprintf("%v, %d Mbit/s", c.delay, c.mbps) }

// cells returns all cells.
func cells() (list []cell) {
	for _, delay := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond} {
		for _, mbps := range []int{10, 100, 300} {
			list = append(list, cell{delay, mbps})
		}
	}
	return list
}

// sustained is traffic over a link with a higher rate, for a time.
type sustained struct {
	delay      time.Duration
	mbps, link int
	lasts      time.Duration
}

// sustainedTime is long enough that a lag of the router's thread would add up and finally cause losses.
const sustainedTime = 5 * time.Second

// String returns the traffic's name in lines.
func (s sustained) String() string {
	return fmt.Sprintf("%v, %d Mbit/s of UDP for %v through %d Mbit/s", s.delay, s.mbps, s.lasts, s.link)
}

// losses are shares of packets lost at random.
var losses = []float64{0.001, 0.01, 0.1}

type check struct {
	progress lab.Progress
	seed     uint64
}

// New returns the check of the emulated network: pings and sweeps of UDP through links of 1, 10 and 50 ms and 10, 100
// and 300 Mbit/s, 400 Mbit/s for some seconds, losses, and marks. The seed determines the lost packets, so that every
// run with the same seed loses the same packets. 0 draws a seed from the time, and a line reports the seed.
func New(progress lab.Progress, seed uint64) lab.Check { return check{progress, seed} }

// Name implements lab.Check.
func (check) Name() string {
	return "The emulated network: delays, rates, losses and marks compared with a model"
}

// Run implements lab.Check. If all measurements of a line were disturbed, the line is skipped with the reason. Repeated
// measurements are counted.
func (c check) Run(ctx context.Context) ([]claim.Line, error) {
	var lines []claim.Line
	late, again := int64(0), 0
	add := func(name string, measure func(context.Context) ([]claim.Line, error)) error {
		got, repeated, err := retried(ctx, measure)
		again += repeated
		var invalid invalidError
		switch {
		case errors.As(err, &invalid):
			late++
			got = []claim.Line{claim.Skip(name, string(invalid))}
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, l := range got {
			c.progress.Say("  %s", l)
		}
		lines = append(lines, got...)
		return nil
	}
	seed := c.seed
	if seed == 0 {
		// The line prints seconds since 1970 without loss of digits.
		seed = uint64(time.Now().Unix())
	}
	for _, m := range measurements(seed) {
		err := add(m.name, m.measure)
		if errors.Is(err, router.ErrPrivileges) || errors.Is(err, router.ErrTUN) {
			return []claim.Line{claim.Skip("emulated network", err.Error())}, nil
		}
		if err != nil {
			return lines, err
		}
	}
	lines = append(lines, claim.Information("seed of the losses", float64(seed), ""),
		claim.Information("measurements discarded because the machine was disturbed or the sender was delayed",
			float64(again), ""))
	return append(lines, claim.Exactly("measurements that were disturbed in every attempt", late, "", 0)), nil
}

// measurement is one measurement with the name of its skipped line.
type measurement struct {
	name    string
	measure func(context.Context) ([]claim.Line, error)
}

// measurements returns all measurements.
func measurements(seed uint64) (list []measurement) {
	for _, c := range cells() {
		list = append(list,
			measurement{c.String() + ": ping", c.ping}, measurement{c.String() + ": UDP at 80 % of the rate", c.sweep},
			measurement{c.String() + ": UDP at 130 % of the rate", c.overload})
	}
	all := sustained{delay: 10 * time.Millisecond, mbps: sustainedMbps, link: sustainedLink, lasts: sustainedTime}
	list = append(list, measurement{all.String(), all.measure})
	for i, share := range losses {
		// Each measurement has its own seed. With the same seed, the packets lost at a small share are also lost at a
		// larger share.
		seed := seed + uint64(i)
		list = append(list, measurement{fmt.Sprintf("loss of %g %%", 100*share),
			func(ctx context.Context) ([]claim.Line, error) { return loss(ctx, share, seed) }})
	}
	return append(list, measurement{"marks", marks})
}

// invalidError is the reason why a measurement is not valid.
type invalidError string

// Error implements error.
func (e invalidError) Error() string { return "not valid: " + string(e) }

// retried measures until a measurement is not disturbed, and returns the number of discarded measurements.
func retried(ctx context.Context, measure func(context.Context) ([]claim.Line, error)) (lines []claim.Line,
	discarded int, err error) {
	for discarded = 0; discarded < attempts; discarded++ {
		if err := ctx.Err(); err != nil {
			return nil, discarded, err
		}
		var invalid invalidError
		if lines, err = measure(ctx); !errors.As(err, &invalid) {
			return lines, discarded, err
		}
	}
	return nil, discarded, err
}
