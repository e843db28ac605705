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
	// sustainedMbps is what has to pass for longer in packets of 1,200 bytes, on a link that carries more.
	sustainedMbps = 400
	// sustainedLink is that link: sustained traffic takes 80 % of it, as the sweeps do.
	sustainedLink = 500
	// attempts are how often something is measured at most: again only if the machine was disturbed, or the sender held up.
	attempts = 4
)

// cell is a link to be measured.
type cell struct {
	delay time.Duration
	mbps  int
}

// String names the cell in lines.
func (c cell) String() string { return fmt.Sprintf("%v, %d Mbit/s", c.delay, c.mbps) }

// cells are all of them.
func cells() (list []cell) {
	for _, delay := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond} {
		for _, mbps := range []int{10, 100, 300} {
			list = append(list, cell{delay, mbps})
		}
	}
	return list
}

// sustained is traffic over a link that carries more, for a time.
type sustained struct {
	delay      time.Duration
	mbps, link int
	lasts      time.Duration
}

// sustainedTime is long enough that what the thread is late with would add up, and be lost in the end.
const sustainedTime = 5 * time.Second

// String names the traffic in lines.
func (s sustained) String() string {
	return fmt.Sprintf("%v, %d Mbit/s of UDP for %v through %d Mbit/s", s.delay, s.mbps, s.lasts, s.link)
}

// losses are shares of packets lost at random.
var losses = []float64{0.001, 0.01, 0.1}

type check struct {
	progress lab.Progress
	seed     uint64
}

// New is the check of the emulated network: pings and sweeps of UDP through links of 1, 10 and 50 ms and 10, 100 and 300 Mbit/s, 400 Mbit/s for some seconds, losses, and marks.
// Which packets are lost follows from the seed, the same ones of every run with it; 0 draws one from the time, which a line tells.
func New(progress lab.Progress, seed uint64) lab.Check { return check{progress, seed} }

// Name implements lab.Check.
func (check) Name() string {
	return "The emulated network: delays, rates, losses and marks against what they should be"
}

// Run implements lab.Check. Lines whose measurements were all disturbed are skipped with the reason. Measurements that were made again are counted.
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
		// Seconds since 1970 are written out whole by a line.
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
		claim.Information("measurements discarded because the machine was disturbed, or the sender held up", float64(again), ""))
	return append(lines, claim.Exactly("measurements that were disturbed each time", late, "", 0)), nil
}

// measurement is something to be measured, and what it is called if it could not be.
type measurement struct {
	name    string
	measure func(context.Context) ([]claim.Line, error)
}

// measurements are all of them.
func measurements(seed uint64) (list []measurement) {
	for _, c := range cells() {
		list = append(list,
			measurement{c.String() + ": ping", c.ping}, measurement{c.String() + ": UDP at 80 % of the rate", c.sweep},
			measurement{c.String() + ": UDP at 130 % of the rate", c.overload})
	}
	all := sustained{delay: 10 * time.Millisecond, mbps: sustainedMbps, link: sustainedLink, lasts: sustainedTime}
	list = append(list, measurement{all.String(), all.measure})
	for i, share := range losses {
		// Each has a seed of its own: with the same one the packets of a small share are lost with a larger one, too.
		seed := seed + uint64(i)
		list = append(list, measurement{fmt.Sprintf("loss of %g %%", 100*share), func(ctx context.Context) ([]claim.Line, error) { return loss(ctx, share, seed) }})
	}
	return append(list, measurement{"marks", marks})
}

// invalidError says why a measurement means nothing.
type invalidError string

// Error implements error.
func (e invalidError) Error() string { return "not valid: " + string(e) }

// retried measures until nothing has disturbed the measurement, and returns how many measurements were discarded.
func retried(ctx context.Context, measure func(context.Context) ([]claim.Line, error)) (lines []claim.Line, discarded int, err error) {
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
