package claims

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/test/claim"
)

// pictures checks the quality of pictures over L4S beside other flows.
type pictures struct{ cells }

// NewPictures returns the check of the quality of pictures over L4S, with cells of l4s-quality. It needs a network
// between processes, and is skipped without root.
func NewPictures(o Options, progress lab.Progress) lab.Check {
	return &pictures{cells{Options: o, progress: progress}}
}

// picturesTime is the length of an iteration. The stable state, whose pictures are compared, is its second half, and
// competitors begin 5 s before.
const picturesTime = 20 * time.Second

// Name implements lab.Check.
func (c *pictures) Name() string { return "VMAF beside other flows in paper 000's queue (end to end)" }

// Run implements lab.Check. The fair rate in the queue of paper 000 beside three Prague flows is 25 Mbit/s. Beside
// Cubic the sender has the paper's largest estimate, 90 Mbit/s.
func (c *pictures) Run(ctx context.Context) (lines []claim.Line, err error) {
	folder, err := os.MkdirTemp("", "vollab-check-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	for _, test := range []struct {
		rival, name    string
		bitrate, least float64
	}{{"prague", "Prague", 25, 90}, {"cubic", "Cubic", 90, 98}} {
		ours, err := c.figure(ctx, folder, parameter("rival", test.rival), parameter("flows", 3),
			parameter("bitrate", 0))
		if err != nil {
			return lines, err
		}
		alone, err := c.figure(ctx, folder, parameter("flows", 0), parameter("bitrate", test.bitrate))
		if err != nil {
			return lines, err
		}
		beside := "beside 3 " + test.name
		undisturbed := fmt.Sprintf("undisturbed at %g Mbit/s", test.bitrate)
		lines = append(lines, ours.information("VMAF "+beside), alone.information("VMAF "+undisturbed),
			both(ours, alone, fmt.Sprintf("VMAF %s, of that %s", beside, undisturbed),
				func(a, b float64, name string) claim.Line { return claim.AtLeast(name, 100*a/b, "%", test.least) }))
	}
	return append(lines, c.again()), nil
}

// figure returns the VMAF of a cell of volsfu over L4S.
func (c *pictures) figure(ctx context.Context, folder string, cell ...experiment.Parameter) (figure, error) {
	e, err := c.Library.Find("l4s-quality")
	if err != nil {
		return figure{}, err
	}
	sender := parameter("sender", "volsfu")
	only := append(experiment.Parameters{parameter("transport", "l4s"), sender}, cell...)
	r, err := c.run(ctx, folder, e, experiment.Options{Only: only, Iterations: 1, Duration: picturesTime})
	if err != nil {
		return figure{}, err
	}
	return figureOf(r, "vmaf", sender), nil
}
