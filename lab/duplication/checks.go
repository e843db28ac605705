package duplication

import (
	"context"
	"errors"

	"github.com/volsfu/volsfu/internal/netem/router"
	"github.com/volsfu/volsfu/internal/netfn/edge"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment/claims"
	"github.com/volsfu/volsfu/test/claim"
)

// Checks returns the checks, in the order of their numbers.
func Checks(o claims.Options, progress lab.Progress) []lab.Check {
	all := make([]lab.Check, len(titles))
	for i, title := range titles {
		all[i] = &check{title, &bench{options: o, progress: progress}, measurements[i]}
	}
	return all
}

// titles are the names of the checks, in the order of their numbers.
var titles = [...]string{
	"10,000,000 packets over three paths: wrong drops and repeats",
	"cost: the filter, a copy, TCP in three copies, memory",
	"added round trip",
	"20 % loss on each of three paths",
	"table I at FHD: throughput and frame rate beside the undisturbed path and redirection",
	"table I: cost and frames in time",
	"reaction: copies start, useless paths leave, a recovered path returns",
	"the primary path is dead for a second",
	"the controller and the edges are killed",
}

// bench is the environment of a check.
type bench struct {
	// options have the folder of the programs, and the settings of checks with experiments.
	options  claims.Options
	progress lab.Progress
	// short is set if tests run the check: with fewer packets and in less time, so that targets may be missed.
	short bool
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
var unable = []error{router.ErrPrivileges, router.ErrTUN, edge.ErrPrivileges, edge.ErrUnsupported, errUnable}

// errUnable wraps the reason for which this machine cannot measure a part, other than those of the imported packages.
var errUnable = errors.New("cannot be measured here")

// Run implements lab.Check. A part that the machine cannot measure is skipped.
func (c *check) Run(ctx context.Context) ([]claim.Line, error) {
	if len(c.parts) == 0 {
		return []claim.Line{claim.Skip(c.title, "volnet needs Linux")}, nil
	}
	parts := make([]lab.Part, 0, len(c.parts))
	for _, measure := range c.parts {
		parts = append(parts, func(ctx context.Context) ([]claim.Line, error) { return measure(ctx, c.bench) })
	}
	return lab.RunParts(ctx, c.title, parts, unable...)
}

// program returns the path of volnet.
func (b *bench) program() (string, error) {
	if b.options.Programs == "" {
		return lab.FindProgram("volnet")
	}
	return lab.FindProgramIn(b.options.Programs, "volnet")
}
