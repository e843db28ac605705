package hardening

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
)

// Options say what is attacked, and for how long.
type Options struct {
	// Server is the path of the server's program. Without, it is the one beside this program.
	Server string
	// Flood is how long each attack by rate lasts, and other attacks and the time before them at most.
	Flood time.Duration
	// After is how long the participants are watched after an attack.
	After time.Duration
	// Return is how long after an attack the server's memory may take to return. Go collects garbage every two minutes
	// at least (forcegcperiod in runtime/proc.go), and returns free memory within seconds of that.
	Return time.Duration
	// OneServer has the ways of an attack share a server and its innocents, who are alone for a while before the first
	// way only. It saves the time of short attacks. What one way leaves in memory, the next one does not take again.
	OneServer bool
	// Seed is that of the mutated records.
	Seed uint64
}

// DefaultOptions are those of the claims.
func DefaultOptions() Options {
	return Options{Flood: time.Minute, After: 30 * time.Second, Return: 150 * time.Second, Seed: 1}
}

// atMost is a time of an attack that is no longer than a flood.
func (o *Options) atMost(d time.Duration) time.Duration { return min(d, o.Flood) }

// brief is how long the participants are watched after an attack that has done its harm at once, or none.
func (o *Options) brief() time.Duration { return min(5*time.Second, o.After) }

// attack is a kind of attack, with what is claimed of it.
type attack struct {
	name, title string
	run         func(context.Context, *check) ([]claim.Line, error)
}

// check is one attack, or several of one kind.
type check struct {
	title    string
	options  Options
	progress lab.Progress
	run      func(context.Context, *check) ([]claim.Line, error)
	// shared is the stage of the last way, with Options.OneServer.
	shared *stage
}

// Name implements lab.Check.
func (c *check) Name() string { return c.title }

// Run implements lab.Check.
func (c *check) Run(ctx context.Context) ([]claim.Line, error) {
	defer c.leave()
	return c.run(ctx, c)
}

// leave closes the stage that ways share, if there is one.
func (c *check) leave() {
	if c.shared != nil {
		c.shared.close()
		c.shared = nil
	}
}

// Checks are the checks of hardening, in the order of their numbers.
func Checks(o Options, progress lab.Progress) []lab.Check {
	var list []lab.Check
	for _, a := range attacks {
		list = append(list, a.check(o, progress))
	}
	return list
}

// Named is the check of an attack by name, or nil if there is none.
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
