package trust

import (
	"context"
	"errors"

	"github.com/volsfu/volsfu/internal/netem/router"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/fuzzing"
	"github.com/volsfu/volsfu/lab/suite"
	"github.com/volsfu/volsfu/test/claim"
)

// Options select the measured programs and the length of measurements.
type Options struct {
	// Programs is the folder of volsfu, volpeer and the other programs. Empty selects the folder of this program.
	Programs string
	// Data is the folder of the test data. Empty selects synthetic content.
	Data string
	// Fuzz configures the claim on fuzzed inputs.
	Fuzz fuzzing.Options
}

// DefaultOptions returns the options of the claims.
func DefaultOptions() Options { return Options{Fuzz: fuzzing.DefaultOptions()} }

// Checks returns the checks, in the order of their numbers.
func Checks(o Options, progress lab.Progress) []lab.Check {
	all := make([]lab.Check, len(titles))
	for i, title := range titles {
		all[i] = &check{title, &bench{options: o, progress: progress}, measurements[i+1]}
	}
	return all
}

// titles are the names of the checks, in the order of their numbers.
var titles = [...]string{
	"networks: UDP blocked, TCP 443 alone, symmetric and double NAT, IPv6 alone, MTU of 1,280 bytes",
	"relay: cost and added latency",
	"certificates, keys and log file replaced under load",
	"relay: foreign addresses, replayed credentials, 10,000 allocations",
	"keys: the server's memory, wrong keys, altered and replayed frames, a participant who has left",
	"encrypted frames between Chromium, Go and C at 5 % loss",
	"data messages at 5 % loss and 50 ms",
	"webcams, figures and a screen on one downlink",
	"WHIP and WHEP",
	"recording at 200 Mbit/s, replay, a killed server",
	"one client alone: the attacks of the security review",
	"fuzzed inputs of all parsers of network bytes",
}

// bench is the environment of a check.
type bench struct {
	options  Options
	progress lab.Progress
	// short is set if tests run the check: in less time, so that targets may be missed.
	short bool
}

// program returns the path of one of the programs.
func (b *bench) program(name string) (string, error) {
	if b.options.Programs == "" {
		return lab.FindProgram(name)
	}
	return lab.FindProgramIn(b.options.Programs, name)
}

// measurement measures a part of a claim.
type measurement func(ctx context.Context, b *bench) ([]claim.Line, error)

// check is one claim with the functions that measure its parts.
type check struct {
	title string
	bench *bench
	parts []measurement
}

// Name implements lab.Check.
func (c *check) Name() string { return c.title }

// unable lists the errors of a machine on which a part cannot be measured.
var unable = []error{router.ErrPrivileges, router.ErrTUN, suite.ErrSource, errUnable}

// errUnable wraps the reason for which this machine cannot measure a part, other than those of the imported packages.
var errUnable = errors.New("cannot be measured here")

// Run implements lab.Check. A part that the machine cannot measure is skipped.
func (c *check) Run(ctx context.Context) ([]claim.Line, error) {
	if len(c.parts) == 0 {
		return []claim.Line{claim.Skip(c.title, "there is no measurement for this system")}, nil
	}
	parts := make([]lab.Part, 0, len(c.parts))
	for _, measure := range c.parts {
		parts = append(parts, func(ctx context.Context) ([]claim.Line, error) { return measure(ctx, c.bench) })
	}
	return lab.RunParts(ctx, c.title, parts, unable...)
}
