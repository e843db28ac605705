package claims

import (
	"context"
	"math"
	"os"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/test/claim"
)

// outages checks volsfu's selected copies over WiFi and 5G with outages.
type outages struct{ cells }

// NewOutages returns the check of volsfu's selected copies, with cells of dup-sfu. It needs a network between
// processes, and is skipped without root.
func NewOutages(o Options, progress lab.Progress) lab.Check {
	return &outages{cells{Options: o, progress: progress}}
}

// outagesTime is the length of an iteration: all outages.
const outagesTime = time.Minute

// Name implements lab.Check.
func (c *outages) Name() string { return "volsfu over WiFi and 5G with outages, selected copies" }

// Run implements lab.Check.
func (c *outages) Run(ctx context.Context) (lines []claim.Line, err error) {
	folder, err := os.MkdirTemp("", "vollab-check-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	e, err := c.Library.Find("dup-sfu")
	if err != nil {
		return nil, err
	}
	arm := parameter("arm", "selective")
	for _, failure := range []struct{ value, name string }{
		{"loss", "WiFi and 5G with outages"}, {"unplugged", "WiFi unplugged"},
	} {
		r, err := c.run(ctx, folder, e, experiment.Options{
			Only: experiment.Parameters{arm, parameter("failure", failure.value)}, Iterations: 1, Duration: outagesTime,
		})
		if err != nil {
			return lines, err
		}
		none := func(v float64, name string) claim.Line { return claim.Exactly(name, int64(math.Ceil(v)), "", 0) }
		for _, target := range []struct {
			figure, name string
			line         func(v float64, name string) claim.Line
		}{
			{"audio_lost", "audio packets lost", none},
			{"lowest_lost", "frames of the lowest quality lost", none},
			{"gap", "longest gap", func(v float64, name string) claim.Line {
				return claim.AtMost(name, v, "ms", 100)
			}},
			{"cost", "bytes on both paths, of those on one", func(v float64, name string) claim.Line {
				return claim.AtMost(name, v, "", 1.25)
			}},
		} {
			f, name := figureOf(r, target.figure, arm), failure.name+": "+target.name
			if f.there {
				lines = append(lines, target.line(f.value, f.named(name)))
			} else {
				lines = append(lines, f.absent(name))
			}
		}
		lines = append(lines, figureOf(r, "high_lost", arm).information(failure.name+": other frames lost"))
	}
	return append(lines, c.again()), nil
}
