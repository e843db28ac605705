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

// The bounds of the claims on paper 003's table I.
const (
	// besideUndisturbed is the least share, in per cent, of the throughput of the undisturbed default path.
	besideUndisturbed = 95
	// besideRedirection is the least share of redirection's throughput.
	besideRedirection = 0.98
	// worstSecond is the least number of frames in any second: 95 % of 30 frames per second.
	worstSecond = 0.95 * 30
	// inTime is the least share of the frames within 150 ms of their capture, in per cent.
	inTime = 99.5
)

// tableTime is the length of an iteration, as in the paper: the delays vary from 10 to 50 s.
const tableTime = 60 * time.Second

// tableCells are the networks of the claims. The paper has neither the kind of variation nor the number of requests
// under way. BBR's search for the least round trip (PROBE_RTT: four packets for 200 ms, every 10 s) costs frames on
// every path, the undisturbed one too: with four requests a perfect path has at most 28 frames in the worst second, and
// with four or eight requests less than 99.5 % of the frames are in time (paper003.TestPausesOfBBR). The figures of the
// undisturbed path therefore stand beside, and volnet is compared with them, too.
var tableCells = []struct {
	variation   string
	outstanding int
}{{"packet", 4}, {"drift", 4}, {"packet", 8}}

// tableThroughput checks the throughput and the frame rate of volnet on paper 003's table I.
type tableThroughput struct{ cells }

// NewTableThroughput returns the check of throughput and frame rate on the paths of paper 003's table I, with cells of
// dup-fig7. It needs a network between processes, and is skipped without root.
func NewTableThroughput(o Options, progress lab.Progress) lab.Check {
	return &tableThroughput{cells{Options: o, progress: progress}}
}

// Name implements lab.Check.
func (c *tableThroughput) Name() string { return "paper 003: throughput and frame rate on table I" }

// Run implements lab.Check.
func (c *tableThroughput) Run(ctx context.Context) ([]claim.Line, error) {
	r, err := c.table(ctx, parameter("quality", "fhd"))
	if err != nil {
		return nil, err
	}
	var lines []claim.Line
	for _, cell := range tableCells {
		of := func(name, arm string) figure {
			return figureOf(r, name, parameter("variation", cell.variation),
				parameter("outstanding", cell.outstanding), parameter("arm", arm))
		}
		named := func(what string) string {
			return fmt.Sprintf("FHD, variation by %s, %d requests: %s", cell.variation, cell.outstanding, what)
		}
		ours, undisturbed := of("throughput", "volnet"), of("throughput", "undisturbed")
		lines = append(lines, ours.information(named("throughput of volnet")),
			both(ours, undisturbed, named("throughput of volnet, of the undisturbed path 1"),
				func(a, b float64, name string) claim.Line {
					return claim.AtLeast(name, 100*a/b, "%", besideUndisturbed)
				}),
			both(ours, of("throughput", "off"), named("throughput of volnet, of path 1 alone (paper: 7)"),
				func(a, b float64, name string) claim.Line { return claim.Stated(name, a/b, "×") }),
			both(ours, of("throughput", "redirection"), named("throughput of volnet, of redirection"),
				func(a, b float64, name string) claim.Line {
					return claim.AtLeast(name, a/b, "×", besideRedirection)
				}),
			of("fps_worst", "volnet").judged(named("worst second"), func(f figure, name string) claim.Line {
				return claim.AtLeast(name, f.value, f.unit, worstSecond)
			}),
			of("fps_worst", "undisturbed").stated(named("worst second of the undisturbed path 1 (PROBE_RTT of BBR)")),
			both(of("fps_worst", "volnet"), of("fps_worst", "undisturbed"),
				named("worst second, of that of the undisturbed path 1"),
				func(a, b float64, name string) claim.Line { return claim.Stated(name, 100*a/b, "%") }),
			of("fps_worst", "off").information(named("worst second of path 1 alone (paper: 3)")),
			of("fps_worst", "redirection").information(named("worst second of redirection")))
		if cell.outstanding == 4 {
			lines = append(lines, of("throughput", "paper").information(named("throughput of the paper's system")),
				of("fps_worst", "paper").information(named("worst second of the paper's system")))
		}
	}
	return append(lines, extent(r), c.again()), nil
}

// tableCost checks the cost of volnet on paper 003's table I.
type tableCost struct{ cells }

// NewTableCost returns the check of the cost and the frames in time on the paths of paper 003's table I, with cells of
// dup-fig7. It needs a network between processes, and is skipped without root.
func NewTableCost(o Options, progress lab.Progress) lab.Check {
	return &tableCost{cells{Options: o, progress: progress}}
}

// Name implements lab.Check.
func (c *tableCost) Name() string { return "paper 003: cost and frames in time on table I" }

// Run implements lab.Check.
func (c *tableCost) Run(ctx context.Context) (lines []claim.Line, err error) {
	for _, test := range []struct {
		quality, name string
		paper, most   float64
	}{{"fhd", "FHD", 2.4, 1.3}, {"nfov", "NFOV", 1.8, 1.15}} {
		quality, outstanding := parameter("quality", test.quality), parameter("outstanding", 4)
		ours, err := c.table(ctx, quality, outstanding, parameter("arm", "volnet"))
		if err != nil {
			return lines, err
		}
		packet := parameter("variation", "packet")
		undisturbed, err := c.table(ctx, quality, outstanding, parameter("arm", "undisturbed"), packet)
		if err != nil {
			return lines, err
		}
		for _, variation := range []string{"packet", "drift"} {
			of := func(name string) figure { return figureOf(ours, name, parameter("variation", variation)) }
			named := func(what string) string {
				return fmt.Sprintf("%s, variation by %s: %s", test.name, variation, what)
			}
			lines = append(lines,
				of("cost").judged(
					named(fmt.Sprintf("packets on all paths, of the packets sent (paper: %g)", test.paper)),
					func(f figure, name string) claim.Line {
						return claim.AtMost(name, f.value, f.unit, test.most)
					}),
				of("timely").judged(named("frames within 150 ms of their capture"),
					func(f figure, name string) claim.Line {
						return claim.AtLeast(name, f.value, f.unit, inTime)
					}),
				both(of("timely"), figureOf(undisturbed, "timely", packet),
					named("frames within 150 ms, of those of the undisturbed path 1"),
					func(a, b float64, name string) claim.Line {
						return claim.AtLeast(name, 100*a/b, "%", inTime)
					}))
		}
		lines = append(lines, figureOf(undisturbed, "timely", packet).stated(
			test.name+": frames within 150 ms on the undisturbed path 1 (PROBE_RTT of BBR)"), extent(ours))
	}
	return append(lines, c.again()), nil
}

// table runs cells of dup-fig7 once, for the whole time of the paper.
func (c *cells) table(ctx context.Context, only ...experiment.Parameter) (*experiment.Result, error) {
	folder, err := os.MkdirTemp("", "vollab-check-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	e, err := c.Library.Find("dup-fig7")
	if err != nil {
		return nil, err
	}
	return c.run(ctx, folder, e, experiment.Options{Only: only, Iterations: 1, Duration: tableTime, NoRaw: true})
}

// extent returns the line with the number of iterations and the seeds of a result.
func extent(r *experiment.Result) claim.Line {
	return claim.Information(fmt.Sprintf("%s: iterations of %g s, seeds from %d", r.Name, r.IterationSeconds, r.Seed),
		float64(r.Iterations), "")
}
