package reproduction

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/awake"
	"github.com/volsfu/volsfu/lab/environment"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/library"
	"github.com/volsfu/volsfu/lab/experiment/report"
)

// Tier is the extent of a reproduction.
type Tier string

// The tiers.
const (
	// Tour runs the short cells of all experiments once, in about 25 minutes.
	Tour Tier = "tour"
	// Claims runs the cells of the main claims, with intervals, in at most four hours.
	Claims Tier = "claims"
	// Full runs all cells as the papers, in several days.
	Full Tier = "full"
)

// The extent of a cell in tier claims.
const (
	claimIterations = 5
	claimTime       = 20 * time.Second
)

// overhead is the time of an iteration besides measuring: 4.2 s on average in the documented runs.
const overhead = 4200 * time.Millisecond

// everything selects all papers.
const everything = "all"

// Plan is the run of one experiment of a tier.
type Plan struct {
	Experiment *experiment.Experiment
	Options    experiment.Options
	// Time is the expected time.
	Time time.Duration
}

// PlanOf returns the runs that the items need in a tier, each experiment once.
func PlanOf(items []Item, l *experiment.Library, tier Tier) ([]Plan, error) {
	var plans []Plan
	for i := range items {
		item := &items[i]
		if tier == Claims && !item.Claim {
			continue
		}
		for _, name := range item.Runs() {
			e, err := l.Find(name)
			if err != nil {
				return nil, err
			}
			at := slices.IndexFunc(plans, func(p Plan) bool { return p.Experiment.Name == name })
			if at < 0 {
				at = len(plans)
				plans = append(plans, Plan{Experiment: e, Options: experiment.Options{Short: tier == Tour}})
				if tier == Claims {
					plans[at].Options.Iterations, plans[at].Options.Duration = claimIterations, claimTime
				}
			}
			if tier == Claims {
				plans[at].add(item)
			}
		}
	}
	for i := range plans {
		plans[i].Time = plans[i].Experiment.Time(plans[i].Options, overhead)
	}
	return plans, nil
}

// add adds the cells that an item needs.
func (p *Plan) add(item *Item) {
	for _, e := range item.Evidence {
		if e.Run != p.Experiment.Name {
			continue
		}
		for _, name := range e.cells(p.Experiment) {
			if !slices.Contains(p.Options.Cells, name) {
				p.Options.Cells = append(p.Options.Cells, name)
			}
		}
	}
}

// reproducing holds the flags of vollab reproduce.
type reproducing struct {
	version string
	tier    string
	write   string
	plan    bool
	// recorded is set to compare recorded runs instead of running.
	recorded bool
	options  experiment.Options
	out      string
}

// Command returns the command vollab reproduce. The version is for reports.
func Command(version string) *cobra.Command {
	r := &reproducing{version: version}
	cmd := &cobra.Command{
		Use:   "reproduce PAPER|all",
		Short: "Repeat every table and figure of a paper, and compare the results with the paper",
		Long: `Repeat every table and figure of a paper, and compare the results with the paper. PAPER is 000, 001,
002, 003 or 004. Each experiment is run as by vollab run; finished iterations of an interrupted run are
kept. With --recorded, nothing is run: the journals of earlier runs, also of another version, are compared
with the values of the papers in this program.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer cancel()
			return r.run(ctx, arguments[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.tier, "tier", string(Tour),
		"extent: tour (every experiment once, 25 minutes), claims (the main claims with intervals, 2 hours), "+
			"full (as the papers, 4 days)")
	f.BoolVar(&r.plan, "plan", false, "print the experiments and their expected times, and run nothing")
	f.BoolVar(&r.recorded, "recorded", false, "run nothing, and compare the recorded runs in the folder --out")
	f.StringVar(&r.out, "out", "reproduction", "folder for the reports of the experiments")
	f.StringVar(&r.write, "write", "", "folder for a page of each paper; by default that of the reports")
	f.StringVar(&r.options.Data, "data", os.Getenv(lab.TestDataVariable),
		"folder of the test data; empty selects the synthetic figure, which the report notes")
	f.StringVar(&r.options.Programs, "programs", "",
		"folder of volsfu and volpeer; by default the folder of this program")
	f.Uint64Var(&r.options.Seed, "seed", 1, "seed of the first iteration and of the order of cells")
	return cmd
}

func (r *reproducing) run(ctx context.Context, paper string, out, console io.Writer) error {
	tier := Tier(r.tier)
	if !slices.Contains([]Tier{Tour, Claims, Full}, tier) {
		return fmt.Errorf("--tier: expected %s, %s or %s, got %q", Tour, Claims, Full, r.tier)
	}
	l, err := library.New()
	if err != nil {
		return err
	}
	items, err := Items(l)
	if err != nil {
		return err
	}
	if items = ofPaper(items, paper); len(items) == 0 {
		return fmt.Errorf("expected the number of a paper (000 to 004) or %s, got %q", everything, paper)
	}
	plans, err := PlanOf(items, l, tier)
	if err != nil {
		return err
	}
	if r.plan {
		return printPlan(plans, out)
	}
	var results map[string]*experiment.Result
	if r.recorded {
		results, err = r.reopen(plans, l)
	} else {
		results, err = r.runAll(ctx, plans, console)
	}
	if err != nil {
		return err
	}
	return r.compare(items, l, tier, results, out)
}

// ofPaper returns the items of a paper, or of all papers.
func ofPaper(items []Item, paper string) []Item {
	return slices.DeleteFunc(items, func(i Item) bool { return paper != everything && i.Paper != paper })
}

// printPlan prints the experiments of a plan.
func printPlan(plans []Plan, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "experiment\ttime")
	var sum time.Duration
	for _, p := range plans {
		_, _ = fmt.Fprintf(table, "%s\t%v\n", p.Experiment.Name, p.Time.Round(time.Second))
		sum += p.Time
	}
	_, _ = fmt.Fprintf(table, "all\t%v\n", sum.Round(time.Second))
	return table.Flush()
}

// runAll runs the experiments of a plan, or continues them, and writes their reports.
func (r *reproducing) runAll(
	ctx context.Context, plans []Plan, console io.Writer,
) (map[string]*experiment.Result, error) {
	described, err := environment.Read(ctx, r.options.Data)
	if err != nil {
		return nil, err
	}
	shared, err := os.MkdirTemp("", "vollab-reproduce-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(shared) }()
	defer awake.Hold()()
	results := make(map[string]*experiment.Result)
	for _, p := range plans {
		o := p.Options
		o.Data, o.Programs, o.Seed, o.Version = r.options.Data, r.options.Programs, r.options.Seed, r.version
		o.Folder, o.Shared, o.Resume = filepath.Join(r.out, p.Experiment.Name), shared, true
		o.Environment, o.Progress = described, lab.NewProgress(console)
		result, err := p.Experiment.Run(ctx, o)
		if err != nil {
			return nil, err
		}
		if err := report.Write(result, o.Folder); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w; the same command continues the run", ctx.Err())
		}
		results[p.Experiment.Name] = result
	}
	return results, nil
}

// Errors of recorded runs.
var (
	errExtent     = errors.New("the recorded run has another extent than the tier")
	errUnrecorded = errors.New("--recorded: expected the journal of at least one experiment")
)

// reopen returns the results of recorded runs, by the library's values of the papers. Experiments without a journal
// have no result.
func (r *reproducing) reopen(plans []Plan, l *experiment.Library) (map[string]*experiment.Result, error) {
	results := make(map[string]*experiment.Result)
	for _, p := range plans {
		name := p.Experiment.Name
		result, err := l.Reopen(filepath.Join(r.out, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = errors.Join(p.fits(result), l.Revise(result))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		results[name] = result
	}
	if len(results) == 0 {
		return nil, fmt.Errorf("%w in a folder of %s", errUnrecorded, r.out)
	}
	return results, nil
}

// fits returns errExtent if a run has another extent than the plan.
func (p *Plan) fits(r *experiment.Result) error {
	want := p.Experiment.Extent(p.Options)
	if r.Short == p.Options.Short && r.Iterations == want.Iterations && r.IterationSeconds == want.Seconds {
		return nil
	}
	return fmt.Errorf("%w: %d iterations of %g s, expected %d of %g s", errExtent, r.Iterations, r.IterationSeconds,
		want.Iterations, want.Seconds)
}

// compare writes the page of each paper and prints the status of its items.
func (r *reproducing) compare(items []Item, l *experiment.Library, tier Tier, results map[string]*experiment.Result,
	out io.Writer) error {
	folder := r.write
	if folder == "" {
		folder = r.out
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var failed error
	for len(items) > 0 {
		one := Reproduction{Paper: items[0].Paper, Title: titles[items[0].Paper], Tier: tier}
		seen := make(map[string]bool)
		for len(items) > 0 && items[0].Paper == one.Paper {
			c, err := Compare(items[0], l, results)
			if err != nil {
				return err
			}
			one.Items = append(one.Items, c)
			for _, name := range c.Runs() {
				if result := results[name]; result != nil && !seen[name] {
					seen[name] = true
					one.Runs = append(one.Runs, describe(result))
				}
			}
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", c.Paper, c.Place, c.Status)
			items = items[1:]
		}
		failed = errors.Join(failed, one.Write(folder))
	}
	return errors.Join(table.Flush(), failed)
}
