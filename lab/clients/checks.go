package clients

import (
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/suite"
)

// Options select the measured programs.
type Options struct {
	// Programs is the folder of volsfu and volpeer, which encodes Draco. Empty selects the folder of this program.
	Programs string
	// Receiving is the time for which C# receives three people.
	Receiving time.Duration
	// Pages adds pages in Chromium to the programs that publish and receive. They draw and encode on the processor, so
	// that a busy machine has few of their frames.
	Pages bool
}

// DefaultOptions returns the options of the claims.
func DefaultOptions() Options { return Options{Receiving: 10 * time.Minute, Pages: true} }

// Checks returns the checks, in the order of their numbers.
func Checks(o Options, progress lab.Progress) []lab.Check {
	b := &bench{options: o, progress: progress}
	all := make([]lab.Check, len(claims))
	for i, c := range claims {
		all[i] = &lab.Parted[*bench]{Title: c.title, Bench: b, Parts: c.parts, Unable: []error{suite.ErrSource}}
	}
	return all
}

// measurement measures a claim.
type measurement = lab.Measurement[*bench]

// claims are the claims in the order of their numbers.
var claims = []struct {
	title string
	parts []measurement
}{
	{"every receiver decodes every publisher's streams", []measurement{matrix}},
	{"npm package: two pages see each other, a foreign page embeds the viewer", []measurement{npmPackage}},
	{"C#: 10 minutes of three people in buffers", []measurement{threePeople}},
	{"programs and libraries for other systems", []measurement{systems, libraries}},
	{"Python: 100 frames bit-exactly, the notebook, the wheel", []measurement{pythonPackage}},
	{"tutorials, executed literally", []measurement{tutorials}},
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
