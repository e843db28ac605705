package clients

import (
	"context"
	"errors"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/suite"
	"github.com/volsfu/volsfu/test/claim"
)

// Options select the measured programs.
type Options struct {
	// Programs is the folder of volsfu and volpeer, which encodes Draco. Empty selects the folder of this program.
	Programs string
}

// DefaultOptions returns the options of the claims.
func DefaultOptions() Options { return Options{} }

// Checks returns the checks, in the order of their numbers.
func Checks(o Options, progress lab.Progress) []lab.Check {
	b := &bench{options: o, progress: progress}
	all := make([]lab.Check, len(claims))
	for i, c := range claims {
		all[i] = &check{c.title, b, c.measure}
	}
	return all
}

// measurement measures a claim.
type measurement func(ctx context.Context, b *bench) ([]claim.Line, error)

// claims are the claims in the order of their numbers. A claim without a measurement is skipped.
var claims = []struct {
	title   string
	measure measurement
}{
	{"every receiver decodes every publisher's streams", matrix},
	{"npm package: two pages see each other, a foreign page embeds the viewer", nil},
	{"C#: 10 minutes of three people in buffers", nil},
	{"programs for Windows and macOS", systems},
	{"Python: 100 frames, the notebook", nil},
	{"tutorials, executed literally", nil},
}

// bench is the environment of the checks.
type bench struct {
	options  Options
	progress lab.Progress
}

// program returns the path of one of the programs.
func (b *bench) program(name string) (string, error) {
	if b.options.Programs == "" {
		return lab.FindProgram(name)
	}
	return lab.FindProgramIn(b.options.Programs, name)
}

// errUnable wraps the reason for which this machine cannot measure a claim.
var errUnable = errors.New("cannot be measured here")

// check is one claim.
type check struct {
	title   string
	bench   *bench
	measure measurement
}

// Name implements lab.Check.
func (c *check) Name() string { return c.title }

// Run implements lab.Check. A claim that the machine cannot measure is skipped.
func (c *check) Run(ctx context.Context) ([]claim.Line, error) {
	if c.measure == nil {
		return []claim.Line{claim.Skip(c.title, "there is no measurement")}, nil
	}
	part := func(ctx context.Context) ([]claim.Line, error) { return c.measure(ctx, c.bench) }
	return lab.RunParts(ctx, c.title, []lab.Part{part}, suite.ErrSource, errUnable)
}
