package trust

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/lab/hardening"
	"github.com/volsfu/volsfu/test/claim"
)

// floodTime is the length of each attack by rate, and afterTime the time for which the innocents are watched after it.
// vollab check hardening has longer attacks of the same kinds.
const (
	floodTime = 10 * time.Second
	afterTime = 5 * time.Second
)

// shortAttack is the attack of tests of this package: lab/test/hardening has all of them.
const shortAttack = "alerts"

// attacks runs all attacks of package hardening. The names of the lines begin with the attack.
func attacks(ctx context.Context, b *bench) (lines []claim.Line, failed error) {
	server, err := b.program("volsfu")
	if err != nil {
		return nil, err
	}
	o := hardening.DefaultOptions()
	o.Server, o.Flood, o.After = server, floodTime, afterTime
	names := hardening.Names()
	if b.short {
		o.Flood, o.After, o.Return, names = time.Second, time.Second, 0, []string{shortAttack}
	}
	for _, name := range names {
		b.progress.Say("  %s", name)
		more, err := hardening.Named(name, o, b.progress).Run(ctx)
		for i := range more {
			more[i].Name = name + ": " + more[i].Name
		}
		lines = append(lines, more...)
		switch {
		case ctx.Err() != nil:
			return lines, ctx.Err()
		case errors.Is(err, hardening.ErrPrivileges):
			lines = append(lines, claim.Skip(name, err.Error()))
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
		}
	}
	return lines, failed
}
