package trust

import (
	"github.com/volsfu/volsfu/internal/netem/router"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/fuzzing"
	"github.com/volsfu/volsfu/lab/suite"
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
		all[i] = newCheck(title, &bench{options: o, progress: progress}, measurements[i+1])
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
	return lab.FindProgramIn(b.options.Programs, name)
}

// measurement measures a part of a claim.
type measurement = lab.Measurement[*bench]

// newCheck returns the check of a claim with the functions that measure its parts.
func newCheck(title string, b *bench, parts []measurement) lab.Check {
	return &lab.Parted[*bench]{Title: title, Bench: b, Parts: parts,
		Missing: "there is no measurement for this system",
		Unable:  []error{router.ErrPrivileges, router.ErrTUN, suite.ErrSource}}
}
