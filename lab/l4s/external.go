package l4s

import (
	"context"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/control"
	"github.com/volsfu/volsfu/lab/rival"
	"github.com/volsfu/volsfu/lab/suite"
	"github.com/volsfu/volsfu/test/claim"
)

// external compares the server with senders of others on the same links, end to end.
type external struct {
	live    *bench
	folders Options
	// run runs a case with a sender of others.
	run func(ctx context.Context, text string, o control.Options, e *rival.External) (*control.Result, error)
}

// NewExternal returns the check of senders of others, whose programs are in folders.
func NewExternal(o Options, progress lab.Progress) lab.Check {
	o.Live = true
	_, live := benches(o, progress)
	return &external{live, o, control.RunExternal}
}

// chromiumTime bounds the test of Chromium, with the time of building programs.
const chromiumTime = 10 * time.Minute

// NewChromium returns the check of the marks that Chromium reports, a test of the source tree. It needs Go, Node and
// Chromium.
func NewChromium(progress lab.Progress) lab.Check {
	return &suite.Tests{Progress: progress, Title: "Chromium reports the CE marks that were made (end to end)",
		Parts: []suite.Part{{Package: "test/browser", Pattern: "^TestCodepointsOfChromium$", Limit: chromiumTime,
			Counted: "tests passed in which the numbers are equal"}}}
}

// Name implements lab.Check.
func (c *external) Name() string { return "SCReAM and udp_prague on the same links" }

// Run implements lab.Check.
func (c *external) Run(ctx context.Context) ([]claim.Line, error) {
	return c.live.measured(ctx, c.compare)
}

// compare compares the server with each program.
func (c *external) compare(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	var ours, all []runs
	cases := []string{"steady:100", "cliff"}
	for _, program := range []struct {
		name, folder, flag string
		find               func(folder string) (*rival.External, error)
	}{
		{"SCReAM", c.folders.Scream, "--scream", rival.Scream},
		{"udp_prague", c.folders.UDPPrague, "--udp-prague", rival.UDPPrague},
	} {
		if program.folder == "" {
			lines = append(lines, claim.Skip(program.name, "no folder of its programs; "+program.flag+" names one"))
			continue
		}
		e, err := program.find(program.folder)
		if err != nil {
			return lines, err
		}
		if ours == nil {
			if ours, err = b.run(ctx, trial{cases[0], options()}, trial{cases[1], options()}); err != nil {
				return lines, err
			}
			all = append(all, ours...)
		}
		var theirs []runs
		for _, text := range cases {
			r, err := b.undisturbed(text, func() (*control.Result, error) { return c.run(ctx, text, options(), e) })
			if err != nil {
				return lines, fmt.Errorf("%s, %s: %w", program.name, text, err)
			}
			theirs = append(theirs, runs{r})
		}
		lines = append(lines, compared(b.named("%s: ", program.name), ours, theirs)...)
		all = append(all, theirs...)
	}
	if len(all) == 0 {
		return lines, nil
	}
	return b.withConditions(lines, all), nil
}

// compared returns the lines of a steady link and of a fall. Utilisation is here the share of the link's rate, with
// headers, for both senders.
func compared(name string, ours, theirs []runs) []claim.Line {
	lines := []claim.Line{claim.AtLeast(name+"own utilisation with headers",
		ours[0].least(func(r *control.Result) float64 { return percent(r.ShareWithHeaders()) }), "%",
		theirs[0].least(func(r *control.Result) float64 { return percent(r.ShareOfCapacity) }))}
	if theirs[0].overL4S() {
		lines = append(lines, ours[0].lowLatency(name+"own ", theirs[0].most(queueP99)))
	} else {
		lines = append(lines, claim.Fail(name+"own "+queueName, notECT))
	}
	return append(lines, claim.AtMost(name+"own longest queue after the fall", ours[1].most(queueOfCliff), "ms",
		theirs[1].most(queueOfCliff)))
}
