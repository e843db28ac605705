package reproduction

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/volsfu/volsfu/lab/experiment"
)

// Tier is the extent of a reproduction.
type Tier string

// The tiers.
const (
	// Tour runs the short cells of all experiments once, in about 25 minutes.
	Tour Tier = "tour"
	// Claims runs the cells with values of the papers several times, in at most four hours.
	Claims Tier = "claims"
	// Full runs all cells as the papers, in several days.
	Full Tier = "full"
)

// usual is the extent in tier claims of cells that claims.yaml does not name.
var usual = experiment.Extent{Iterations: 5, Seconds: 20}

// leastIterations is the least number of iterations in tier claims. Two have no useful interval.
const leastIterations = 3

// overhead is the time of an iteration besides measuring: 4.2 s on average in the documented runs.
const overhead = 4200 * time.Millisecond

//go:embed claims.yaml
var claimsText []byte

// ErrClaims reports an invalid list of extents.
var ErrClaims = errors.New("extents of tier claims")

// claim is the extent in tier claims of cells of an experiment.
type claim struct {
	Run string `yaml:"run"`
	// Cells are parameters that the cells must have.
	Cells             experiment.Parameters `yaml:"cells"`
	experiment.Extent `yaml:",inline"`
	// Spent is the time of an iteration besides measuring, in seconds; 0 selects overhead.
	Spent float64 `yaml:"spent"`
}

// parseClaims reads the list of extents. Each entry must select a cell.
func parseClaims(text []byte, l *experiment.Library) ([]claim, error) {
	var claims []claim
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&claims); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrClaims, err)
	}
	for _, c := range claims {
		run, err := l.Find(c.Run)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrClaims, err)
		}
		switch {
		case !slices.ContainsFunc(run.Cells(), func(cell experiment.Cell) bool { return c.selects(c.Run, &cell) }):
			return nil, fmt.Errorf("%w: experiment %s has no cell with %s", ErrClaims, c.Run, c.Cells)
		case c.Iterations < leastIterations || !(c.Seconds > 0) || !(c.Spent >= 0):
			return nil, fmt.Errorf("%w: experiment %s: expected at least %d iterations and times above 0", ErrClaims,
				c.Run, leastIterations)
		}
	}
	return claims, nil
}

// selects reports whether the entry is of a cell of an experiment.
func (c *claim) selects(run string, cell *experiment.Cell) bool {
	return c.Run == run && cell.Parameters.Match(c.Cells)
}

// Plan is the run of cells of one experiment in a tier.
type Plan struct {
	Experiment *experiment.Experiment
	Options    experiment.Options
	// Folder is the name of the run's folder.
	Folder string
	// Recorded is the number of cells that earlier runs have, which the plan does not have.
	Recorded int
	// spent is the time of an iteration besides measuring.
	spent time.Duration
}

// PlanOf returns the runs that the items need in a tier. In tiers tour and full, each experiment has one run. In tier
// claims, an experiment has a run for each extent of its cells.
func PlanOf(items []Item, l *experiment.Library, tier Tier) ([]Plan, error) {
	claims, err := parseClaims(claimsText, l)
	if err != nil {
		return nil, err
	}
	var plans []Plan
	for i := range items {
		for _, name := range items[i].Runs() {
			e, err := l.Find(name)
			if err != nil {
				return nil, err
			}
			switch {
			case tier == Claims:
				for _, cell := range items[i].cells(e) {
					plans = planClaim(plans, e, &cell, claims)
				}
			case !slices.ContainsFunc(plans, func(p Plan) bool { return p.Experiment == e }):
				plans = append(plans, Plan{Experiment: e, Options: experiment.Options{Short: tier == Tour},
					Folder: name, spent: overhead})
			}
		}
	}
	return plans, nil
}

// planClaim adds a cell to the run of its extent. The last entry that selects the cell counts.
func planClaim(plans []Plan, e *experiment.Experiment, cell *experiment.Cell, claims []claim) []Plan {
	extent, folder, spent := usual, e.Name, overhead
	for _, c := range slices.Backward(claims) {
		if !c.selects(e.Name, cell) {
			continue
		}
		if extent = c.Extent; extent != usual {
			folder = fmt.Sprintf("%s-%dx%gs", e.Name, extent.Iterations, extent.Seconds)
		}
		if c.Spent > 0 {
			spent = time.Duration(c.Spent * float64(time.Second))
		}
		break
	}
	at := slices.IndexFunc(plans, func(p Plan) bool { return p.Folder == folder })
	if at < 0 {
		at = len(plans)
		plans = append(plans, Plan{Experiment: e, Folder: folder, spent: spent,
			Options: experiment.Options{Iterations: extent.Iterations, Duration: extent.Duration()}})
	}
	if p := &plans[at]; !slices.Contains(p.Options.Cells, cell.Name()) {
		p.Options.Cells = append(p.Options.Cells, cell.Name())
	}
	return plans
}

// Time returns the expected time of the run.
func (p *Plan) Time() time.Duration { return p.Experiment.Time(p.Options, p.spent) }

// cells returns the names of the cells of the run.
func (p *Plan) cells() (names []string) {
	for _, c := range p.Experiment.Cells() {
		if (c.Short || !p.Options.Short) && (p.Options.Cells == nil || slices.Contains(p.Options.Cells, c.Name())) {
			names = append(names, c.Name())
		}
	}
	return names
}

// take returns an earlier run with only the cells of the plan, nil without such a cell or if the run has another extent
// or other seeds.
func (p *Plan) take(r *experiment.Result, seed uint64) *experiment.Result {
	want, names := p.Experiment.Extent(p.Options), p.cells()
	if r.Name != p.Experiment.Name || r.Short != p.Options.Short || r.Seed != seed || r.Iterations != want.Iterations ||
		r.IterationSeconds != want.Seconds {
		return nil
	}
	taken := *r
	taken.Cells = slices.DeleteFunc(slices.Clone(r.Cells), func(c experiment.CellResult) bool {
		return len(c.Iterations) == 0 || !slices.Contains(names, c.Name)
	})
	if len(taken.Cells) == 0 {
		return nil
	}
	return experiment.Merge(&taken)
}

// without returns the plan without the cells that earlier runs have finished.
func (p *Plan) without(earlier []*experiment.Result) Plan {
	names := p.cells()
	rest := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(earlier, func(r *experiment.Result) bool { return r.Finished(name) })
	})
	left := *p
	if left.Recorded = len(names) - len(rest); left.Recorded > 0 {
		// Options.Cells is not nil: no cell is another selection than all cells.
		left.Options.Cells = append([]string{}, rest...)
	}
	return left
}

// printPlan prints the runs of a plan.
func printPlan(plans []Plan, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "run\titerations × seconds\tcells\trecorded\ttime")
	var sum time.Duration
	for i := range plans {
		p := &plans[i]
		extent := p.Experiment.Extent(p.Options)
		_, _ = fmt.Fprintf(table, "%s\t%d × %g\t%d\t%d\t%v\n", p.Folder, extent.Iterations, extent.Seconds,
			len(p.cells()), p.Recorded, p.Time().Round(time.Second))
		sum += p.Time()
	}
	_, _ = fmt.Fprintf(table, "all\t\t\t\t%v\n", sum.Round(time.Second))
	return table.Flush()
}
