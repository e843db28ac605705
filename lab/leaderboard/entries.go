package leaderboard

import (
	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab/control"
)

// Entry is a controller of the board.
type Entry struct {
	Name string `json:"name"`
	// Title describes the controller, Skipped is the reason for which it was not run.
	Title   string `json:"title"`
	Skipped string `json:"skipped,omitempty"`
	// Yardstick is set for controllers that know the link.
	Yardstick bool `json:"yardstick,omitempty"`
	// Unvalidated is set for a model in virtual time that no test compares with the program that it stands for.
	Unvalidated bool `json:"unvalidated,omitempty"`

	configure func(*control.Options)
}

// Label returns the name for plots, and whether the entry is not validated.
func (e Entry) Label() string {
	if e.Unvalidated {
		return e.Name + " (not validated)"
	}
	return e.Name
}

// Heading returns the name for tables in Markdown, and whether the entry is not validated.
func (e Entry) Heading() string {
	if e.Unvalidated {
		return "`" + e.Name + "` (not validated)"
	}
	return "`" + e.Name + "`"
}

// Reasons of entries that are not run.
const (
	noNewerPion = "v0.1.51 is the newest release of pion/interceptor, and thus pion; its successor pion/bwe has no " +
		"release that the Go module proxy offers"
	noProgram = "a program in real time, without figures about frames: vollab control CASE --live --scream FOLDER or " +
		"--udp-prague FOLDER"
)

// entries returns the controllers in the order of the board.
func entries() []Entry {
	with := func(new func(control.EstimatorStart) congestion.Estimator) func(*control.Options) {
		return func(o *control.Options) {
			o.Estimator.Controller, o.NewEstimator = congestion.ControllerGCC, new
		}
	}
	auto := func(o *control.Options) { o.Estimator.Controller = congestion.ControllerAuto }
	return []Entry{
		{Name: "volsfu-gcc", Title: "GCC of this project, transport-wide feedback", configure: with(nil)},
		{Name: "volsfu-l4s", Title: "L4S of this project, reports of RFC 8888; the queue does not mark packets",
			configure: auto},
		{Name: "volsfu-l4s-dualpi2", Title: "the same behind DualPI2, which marks packets (RFC 9332)",
			configure: func(o *control.Options) {
				auto(o)
				o.Queue = netem.QueueDualPI2
			}},
		{Name: "pion", Unvalidated: true, Title: "GCC of pion/interceptor v0.1.51, in virtual time",
			configure: with(newPion(false))},
		{Name: "pion-corrected", Unvalidated: true, Title: "the same with a longer send history and groups that end",
			configure: with(newPion(true))},
		{Name: "pion-newest", Title: "the newest GCC of Pion", Skipped: noNewerPion},
		{Name: "cubic", Unvalidated: true, Title: "Cubic (RFC 9438) as the controller of frames",
			configure: with(newCubic)},
		{Name: "bbr", Unvalidated: true, Title: "BBR version 1 as the controller of frames", configure: with(newBBR)},
		{Name: "scream", Title: "SCReAM", Skipped: noProgram},
		{Name: "udp-prague", Title: "udp_prague", Skipped: noProgram},
		{Name: "knows-link", Title: "yardstick: knows the link's rate at once", Yardstick: true,
			configure: with(newKnowing(false))},
		{Name: "knows-link-late", Title: "yardstick: knows the link's rate a round trip later", Yardstick: true,
			configure: with(newKnowing(true))},
	}
}
