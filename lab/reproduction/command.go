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
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/awake"
	"github.com/volsfu/volsfu/lab/environment"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/library"
	"github.com/volsfu/volsfu/lab/experiment/report"
)

// everything selects all papers.
const everything = "all"

// reproducing holds the flags of vollab reproduce.
type reproducing struct {
	version string
	tier    string
	write   string
	plan    bool
	// recorded is set to compare recorded runs instead of running. from has the folders of earlier runs.
	recorded bool
	from     []string
	// only has the names of the experiments that run, empty for all.
	only    []string
	options experiment.Options
	out     string
}

// Command returns the command vollab reproduce. The version is for reports.
func Command(version string) *cobra.Command {
	r := &reproducing{version: version}
	cmd := &cobra.Command{
		Use:   "reproduce PAPER|all",
		Short: "Repeat every table and figure of a paper, and compare the results with the paper",
		Long: `Repeat every table and figure of a paper, and compare the results with the paper. PAPER is 000, 001,
002, 003 or 004. Each experiment is run as by vollab run; finished iterations of an interrupted run are
kept. With --from, cells that earlier runs have finished are not run again, also if another version ran
them. With --recorded, nothing is run: the journals of earlier runs are compared with the values of the
papers in this program.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer cancel()
			return r.run(ctx, arguments[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.tier, "tier", string(Tour),
		"extent: tour (every experiment once, 25 minutes), claims (every value of the papers with an interval, "+
			"4 hours), full (as the papers, 4 days)")
	f.BoolVar(&r.plan, "plan", false, "print the runs and their expected times, and run nothing")
	f.BoolVar(&r.recorded, "recorded", false, "run nothing, and compare the recorded runs in the folder --out")
	f.StringSliceVar(&r.from, "from", nil, "folders of earlier runs, whose cells are compared and not run again")
	f.StringSliceVar(&r.only, "only", nil, "run only these experiments; recorded runs of others are still compared")
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
	if err := r.checkOnly(plans); err != nil {
		return err
	}
	before, err := r.earlier(l)
	if err != nil {
		return err
	}
	r.options.Progress = lab.NewProgress(console)
	switch {
	case r.plan:
		return printPlan(r.rest(plans, before), out)
	case !r.recorded:
		if err := r.runAll(ctx, r.rest(plans, before)); err != nil {
			return err
		}
	}
	runs, err := readRecorded([]string{r.out}, l, false)
	if err != nil {
		return err
	}
	runs = append(before, runs...)
	runs.report(plans, r.options.Seed, r.options.Progress)
	results := make(Results)
	for i := range plans {
		name := plans[i].Experiment.Name
		if taken := runs.of(&plans[i], r.options.Seed); len(taken) > 0 {
			results[name] = append(results[name], taken...)
		}
	}
	if len(results) == 0 {
		return fmt.Errorf("%w in a folder of %s", errUnrecorded, r.out)
	}
	return r.compare(items, l, tier, results, out)
}

// ofPaper returns the items of a paper, or of all papers.
func ofPaper(items []Item, paper string) []Item {
	return slices.DeleteFunc(items, func(i Item) bool { return paper != everything && i.Paper != paper })
}

// checkOnly checks that the experiments of --only are in the plan.
func (r *reproducing) checkOnly(plans []Plan) error {
	var names []string
	for i := range plans {
		if name := plans[i].Experiment.Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range r.only {
		if !slices.Contains(names, name) {
			return fmt.Errorf("--only: expected names among %s, got %q", strings.Join(names, ", "), name)
		}
	}
	return nil
}

// rest returns what is to run of the plans, without the cells that earlier runs have finished and the experiments that
// --only leaves out.
func (r *reproducing) rest(plans []Plan, before recorded) []Plan {
	var rest []Plan
	for i := range plans {
		if len(r.only) == 0 || slices.Contains(r.only, plans[i].Experiment.Name) {
			rest = append(rest, plans[i].without(before.of(&plans[i], r.options.Seed)))
		}
	}
	return rest
}

// runAll runs the experiments of plans, or continues them, and writes their reports.
func (r *reproducing) runAll(ctx context.Context, plans []Plan) error {
	if !slices.ContainsFunc(plans, func(p Plan) bool { return len(p.cells()) > 0 }) {
		return nil
	}
	described, err := environment.Read(ctx, r.options.Data)
	if err != nil {
		return err
	}
	shared, err := os.MkdirTemp("", "vollab-reproduce-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(shared) }()
	defer awake.Hold()()
	for i := range plans {
		p := &plans[i]
		if p.Recorded > 0 {
			r.options.Progress.Say("%s: %d cells are recorded, %d cells run", p.Folder, p.Recorded, len(p.cells()))
		}
		if len(p.cells()) == 0 {
			continue
		}
		o := p.Options
		o.Data, o.Programs, o.Seed, o.Version = r.options.Data, r.options.Programs, r.options.Seed, r.version
		o.Folder, o.Shared, o.Resume = filepath.Join(r.out, p.Folder), shared, true
		o.Environment, o.Progress = described, r.options.Progress
		result, err := p.Experiment.Run(ctx, o)
		if err != nil {
			return err
		}
		if err := report.Write(result, o.Folder); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w; the same command continues the run, and --recorded compares its results so far",
				ctx.Err())
		}
	}
	return nil
}

// compare writes the page of each paper and prints the status of its items.
func (r *reproducing) compare(items []Item, l *experiment.Library, tier Tier, results Results, out io.Writer) error {
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
				if !seen[name] {
					seen[name] = true
					for _, result := range results[name] {
						one.Runs = append(one.Runs, describe(result))
					}
				}
			}
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", c.Paper, c.Place, c.Status)
			items = items[1:]
		}
		failed = errors.Join(failed, one.Write(folder))
	}
	return errors.Join(table.Flush(), failed)
}
