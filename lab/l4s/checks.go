package l4s

import (
	"context"
	"path/filepath"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/control"
	"github.com/volsfu/volsfu/test/claim"
)

// Checks returns the checks of the server and its clients, in the order of their numbers.
func Checks(o Options, progress lab.Progress) []lab.Check {
	return checks(benches(o, progress))
}

// benches returns the bench in virtual time, and the one end to end, or nil.
func benches(o Options, progress lab.Progress) (virtual, live *bench) {
	traces := filepath.Join(lab.TestData(), "network-traces")
	if o.Live {
		live = newLive(traces, simulating(control.RunLive, " end to end", progress), progress)
	}
	return newVirtual(traces, simulating(control.RunVirtual, "", progress)), live
}

// simulating adapts a function that returns a Record, and reports each finished case.
func simulating(run func(context.Context, string, control.Options) (*control.Record, error), kind string,
	progress lab.Progress) simulation {
	return func(ctx context.Context, text string, o control.Options) (*control.Result, error) {
		record, err := run(ctx, text, o)
		if err != nil {
			return nil, err
		}
		progress.Say("  %s%s is done", filepath.Base(text), kind)
		return record.Result(), nil
	}
}

// checks returns the checks. live is nil if nothing is measured end to end.
func checks(virtual, live *bench) []lab.Check {
	return []lab.Check{
		&check{"links of 10 to 300 Mbit/s", links, virtual, live},
		&check{"latency of frames", latency, virtual, live},
		&check{"from 12.5 to 90 Mbit/s", ramp, virtual, live},
		&check{"paper 000's queue beside Prague", paperBesidePrague, virtual, live},
		&check{"paper 000's queue beside Cubic", paperBesideCubic, virtual, live},
		&check{"beside Prague", besidePrague, virtual, live},
		&check{"beside Prague, round trips of 5 to 100 ms", roundTrips, virtual, live},
		&check{"beside Cubic", besideCubic, virtual, live},
		&check{"100 Mbit/s that become 20 within 50 ms", cliff, virtual, live},
		&check{"recorded wireless links", recordedLinks, virtual, live},
		&check{"paths that change or drop the ECN field", bleached, virtual, live},
		&check{"one CoDel queue with ECN, and false alarms in DualPI2", classicQueue, virtual, live},
		&check{"a publisher behind 20 Mbit/s", uplink, virtual, live},
		&check{"a room of four, one hop of which is marked", room, virtual, live},
	}
}

// check is one claim and the function that measures it.
type check struct {
	name          string
	measure       measurement
	virtual, live *bench
}

// Name implements lab.Check.
func (c *check) Name() string { return c.name }

// Run implements lab.Check.
func (c *check) Run(ctx context.Context) ([]claim.Line, error) {
	lines, err := c.measure(ctx, c.virtual)
	if err != nil {
		return lines, err
	}
	if c.live == nil {
		return append(lines, claim.Skip("end to end", notLive)), nil
	}
	more, err := c.live.measured(ctx, c.measure)
	return append(lines, more...), err
}

// EndToEnd returns a check that has no part in virtual time: the check itself, or without Options.Live a check that is
// skipped.
func EndToEnd(o Options, c lab.Check) lab.Check {
	if o.Live {
		return c
	}
	return skipped{c}
}

// skipped is a check that is not measured.
type skipped struct{ lab.Check }

// Run implements lab.Check.
func (skipped) Run(context.Context) ([]claim.Line, error) {
	return []claim.Line{claim.Skip("end to end", notLive)}, nil
}

// notLive is the reason of lines that are not measured end to end.
const notLive = "--live=false"
