package duplication

import (
	"github.com/volsfu/volsfu/internal/netem/router"
	"github.com/volsfu/volsfu/internal/netfn/edge"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment/claims"
)

// Checks returns the checks, in the order of their numbers.
func Checks(o claims.Options, progress lab.Progress) []lab.Check {
	all := make([]lab.Check, len(titles))
	for i, title := range titles {
		all[i] = newCheck(title, &bench{options: o, progress: progress}, measurements[i])
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
type measurement = lab.Measurement[*bench]

// newCheck returns the check of a claim with the functions that measure its parts.
func newCheck(title string, b *bench, parts []measurement) lab.Check {
	return &lab.Parted[*bench]{Title: title, Bench: b, Parts: parts, Missing: "volnet needs Linux",
		Unable: []error{router.ErrPrivileges, router.ErrTUN, edge.ErrPrivileges, edge.ErrUnsupported}}
}

// program returns the path of volnet.
func (b *bench) program() (string, error) {
	return lab.FindProgramIn(b.options.Programs, "volnet")
}
