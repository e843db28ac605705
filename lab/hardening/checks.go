package hardening

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
)

// Options select the attacked program and the durations of an attack.
type Options struct {
	// Server is the path of the server's program. Empty selects the one in the folder of this program.
	Server string
	// Flood is the length of each attack by rate, and the upper bound for other attacks and for the time before an
	// attack.
	Flood time.Duration
	// After is the time for which the participants are watched after an attack.
	After time.Duration
	// Return is the time limit for the server's memory to return after an attack. Go collects garbage at least every
	// two minutes (forcegcperiod in runtime/proc.go), and returns free memory within seconds after that.
	Return time.Duration
	// OneServer makes the variants of an attack share a server and its innocents. The innocents are then measured alone
	// only before the first variant, which saves time if attacks are short. Memory that the server retains after one
	// variant is not allocated again by the next.
	OneServer bool
	// Seed is the seed of the mutated records.
	Seed uint64
}

// DefaultOptions returns the options of the claims.
func DefaultOptions() Options {
	return Options{Flood: time.Minute, After: 30 * time.Second, Return: 150 * time.Second, Seed: 1}
}

// atMost limits a duration to Flood.
func (o *Options) atMost(d time.Duration) time.Duration { return min(d, o.Flood) }

// brief returns the time for which the participants are watched after an attack with immediate effects.
func (o *Options) brief() time.Duration { return min(5*time.Second, o.After) }

// attack is a kind of attack with its claims.
type attack struct {
	name, title string
	run         func(context.Context, *check) ([]claim.Line, error)
}

// check is one attack, or several attacks of one kind.
type check struct {
	title    string
	options  Options
	progress lab.Progress
	run      func(context.Context, *check) ([]claim.Line, error)
	// shared is the stage of the previous variant, with Options.OneServer.
	shared *stage
}

// Name implements lab.Check.
func (c *check) Name() string { return c.title }

// Run implements lab.Check.
func (c *check) Run(ctx context.Context) ([]claim.Line, error) {
	defer c.leave()
	return c.run(ctx, c)
}

// leave closes the shared stage, if any.
func (c *check) leave() {
	if c.shared != nil {
		c.shared.close()
		c.shared = nil
	}
}

// Checks returns the checks of hardening, in the order of their numbers.
func Checks(o Options, progress lab.Progress) []lab.Check {
	var list []lab.Check
	for _, a := range attacks {
		list = append(list, a.check(o, progress))
	}
	return list
}

// Names returns the names of the attacks, in the order of the checks.
func Names() []string {
	var names []string
	for _, a := range attacks {
		names = append(names, a.name)
	}
	return names
}

// Named returns the check of an attack by name, or nil if there is none.
func Named(name string, o Options, progress lab.Progress) lab.Check {
	for _, a := range attacks {
		if a.name == name {
			return a.check(o, progress)
		}
	}
	return nil
}

func (a *attack) check(o Options, progress lab.Progress) lab.Check {
	return &check{title: a.title, options: o, progress: progress, run: a.run}
}
