package cluster

import (
	"github.com/volsfu/volsfu/internal/netem/router"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/suite"
)

// Options select the measured programs.
type Options struct {
	// Programs is the folder of volsfu. Empty selects the folder of this program.
	Programs string
	// Previous is the program volsfu of the previous release, which shares rooms with the present one. Without it,
	// rolling upgrades are not measured.
	Previous string
	// Before is a program volsfu without the code of clusters, to compare with. Without it, the differences of claim
	// 12 are not measured.
	Before string
	// Kubernetes is the folder of the programs of Kubernetes and Helm. Programs that it does not have are in the search
	// path. Without one of the programs, claim 14 is not measured.
	Kubernetes string
}

// Checks returns the checks, in the order of their numbers.
func Checks(o Options, progress lab.Progress) []lab.Check {
	all := make([]lab.Check, len(titles))
	for i, title := range titles {
		all[i] = newCheck(title, &bench{options: o, progress: progress}, measurements[i+1])
	}
	return all
}

// titles are the names of the checks, in the order of their numbers.
var titles = [...]string{
	"12 participants over three nodes: first frames, frames lost",
	"trunk: packets per wanted packet, the end of an untaken track",
	"latency added by a relay",
	"processor time of a relayed packet",
	"loss on the trunk",
	"failures of a node: killed, stopped, cut off",
	"drain, and a rolling upgrade",
	"NATS gone for 30 s",
	"a partition of 10 s with one identity on both sides",
	"placement of 1,000 rooms on five nodes with stale loads",
	"500 viewers",
	"a server without --cluster",
	"three idle nodes",
	"the chart on a control plane of Kubernetes: rollout, eviction",
}

// bench is the environment of a check.
type bench struct {
	options  Options
	progress lab.Progress
	// short is set if tests run the check: in less time, so that targets may be missed.
	short bool
}

// program returns the path of the server's program.
func (b *bench) program() (string, error) { return lab.FindProgramIn(b.options.Programs, "volsfu") }

// measurement measures a part of a claim.
type measurement = lab.Measurement[*bench]

// newCheck returns the check of a claim with the functions that measure its parts.
func newCheck(title string, b *bench, parts []measurement) lab.Check {
	return &lab.Parted[*bench]{Title: title, Bench: b, Parts: parts,
		Missing: "there is no measurement for this system",
		Unable:  []error{router.ErrPrivileges, router.ErrTUN, suite.ErrSource}}
}
