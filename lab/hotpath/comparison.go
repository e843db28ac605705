package hotpath

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/volsfu/volsfu/test/claim"
)

// Comparison compares the server's CPU time per forwarded packet with that of the minimal server on Pion's own media
// path, and with the machine's limit.
type Comparison struct {
	bench
	// Runs is the number of runs of each case; medians count.
	Runs  int
	Cases []ComparisonCase
}

// ComparisonCase is one load with its bounds. Ratio bounds the CPU time relative to the other server, OfCeiling
// relative to the machine's limit. A bound of 0 means none.
type ComparisonCase struct {
	Name             string
	Load             Load
	Pacing           Pacing
	Ratio, OfCeiling float64
	// Batched makes the other server send through Pion's batched sockets.
	Batched bool
}

// Name implements lab.Check.
func (c *Comparison) Name() string {
	var names []string
	for _, one := range c.Cases {
		names = append(names, fmt.Sprintf("%s at %g Mbit/s", one.Name, one.Load.Mbps))
	}
	return fmt.Sprintf("CPU time per forwarded packet against Pion's media path: %s", strings.Join(names, "; "))
}

// Run implements lab.Check.
func (c *Comparison) Run(ctx context.Context) ([]claim.Line, error) {
	if c.broken != nil {
		return nil, c.broken
	}
	var lines []claim.Line
	for _, one := range c.Cases {
		some, err := c.measure(ctx, one)
		lines = append(lines, some...)
		if err != nil {
			return lines, fmt.Errorf("%s: %w", one.Name, err)
		}
	}
	return lines, nil
}

// measure makes the runs of one case.
func (c *Comparison) measure(ctx context.Context, one ComparisonCase) ([]claim.Line, error) {
	command := c.compare
	if one.Batched {
		command = append(slices.Clone(command), BatchedFlag)
	}
	runs, err := c.repeat(ctx, one.Name, c.Runs, Options{Load: one.Load, Pacing: one.Pacing, Compare: command})
	if err != nil {
		return unpaced(one.Name+": CPU per forwarded packet", err)
	}
	return one.lines(runs), nil
}

// lines returns the figures of one case.
func (one *ComparisonCase) lines(runs Runs) []claim.Line {
	prefix := one.Name + ": "
	of := prefix + "CPU per forwarded packet, relative to the other server"
	share := claim.Stated(of, runs.Median(func(r *Result) float64 { return *r.CPURatio }), "")
	if one.Ratio > 0 {
		share = claim.AtMost(of, share.Figure, "", one.Ratio)
	}
	lines := []claim.Line{
		share,
		claim.Information(prefix+"CPU per forwarded packet", runs.Median(func(r *Result) float64 { return r.CPU }),
			"µs"),
		claim.Information(prefix+"CPU per forwarded packet, other server",
			runs.Median(func(r *Result) float64 { return r.Compare.CPU }), "µs"),
	}
	if ceiling := runs.Figure(func(r *Result) *float64 { return r.Ceiling }); ceiling != nil {
		of := runs.Median(func(r *Result) float64 { return ratio(r.CPU, *r.Ceiling) })
		name := prefix + "CPU per forwarded packet, times the machine's limit"
		if one.OfCeiling > 0 {
			lines = append(lines, claim.AtMost(name, of, "", one.OfCeiling))
		} else {
			lines = append(lines, claim.Information(name, of, ""))
		}
		lines = append(lines, claim.Information(prefix+"the machine's limit", *ceiling, "µs"))
	}
	if segments := runs.Figure(func(r *Result) *float64 { return r.SegmentsPerSend }); segments != nil {
		lines = append(lines, claim.Stated(prefix+"packets per send, mean", *segments, ""))
	}
	if hold := runs.Quantiles(func(r *Result) *Quantiles { return r.PacerHold }); hold != nil {
		lines = append(lines, claim.Information(prefix+"hold by the pacer, p50", hold.P50, "µs"))
	}
	return append(lines, validity(prefix, runs...)...)
}
