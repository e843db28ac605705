package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/hotpath"
	"github.com/volsfu/volsfu/lab/leaderboard"
)

// markers are the lines of a document before and after a table.
type markers struct{ begin, end string }

var (
	benchTable = markers{"<!-- vollab bench -->", "<!-- end of vollab bench -->"}
	claimTable = markers{"<!-- vollab bench --claims -->", "<!-- end of vollab bench --claims -->"}
)

// errMarkers is returned if a document has no markers for a table.
var errMarkers = errors.New("expected a line")

// benchLoads is the standard set: the receivers of a small room, one receiver, and those of a lecture.
var benchLoads = []struct {
	receivers int
	mbps      float64
	pacing    hotpath.Pacing
}{
	{10, 50, hotpath.PacingOff},
	{10, 50, hotpath.PacingOn},
	{1, 50, hotpath.PacingOff},
	{50, 10, hotpath.PacingOff},
}

// Command returns the command vollab bench. The version is for the report of claims.
func Command(version string) *cobra.Command {
	var document string
	var seconds float64
	var claims bool
	cmd := &cobra.Command{
		Use: "bench",
		Short: "Measure a short standard set of loads beside a minimal fan-out server on Pion, medians of three " +
			"runs, as a table in Markdown",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer cancel()
			progress := lab.NewProgress(cmd.ErrOrStderr())
			put := func(between markers, table string) error {
				if document == "" {
					_, err := io.WriteString(cmd.OutOrStdout(), table)
					return err
				}
				return writeTable(document, between, table)
			}
			table, err := bench(ctx, progress, time.Duration(seconds*float64(time.Second)))
			if err != nil {
				return err
			}
			if err := put(benchTable, table); err != nil || !claims {
				return err
			}
			report := lab.NewReport("hot-path", version)
			for i, check := range hotpath.Checks(progress) {
				if err := ctx.Err(); err != nil {
					return err
				}
				report.Run(ctx, i+1, check, progress)
			}
			return put(claimTable, claimRows(report))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&document, "write", "",
		"document whose tables are replaced, each between the comments with its name")
	flags.Float64Var(&seconds, "seconds", 5, "time of measuring each server in a run, in seconds")
	flags.BoolVar(&claims, "claims", false, "also run vollab check hot-path, and write its claims as a second table")
	cmd.AddCommand(leaderboard.Command(version))
	return cmd
}

// claimRows returns the table of the figures with a target. The table leaves out the line that all runs were valid.
func claimRows(report *lab.Report) string {
	var table strings.Builder
	fmt.Fprintf(&table, "| claim (`vollab check %s`) | figure | target |\n|---|---|---|\n", report.Name)
	for _, section := range report.Sections {
		for _, line := range section.Lines {
			switch {
			case line.Met && strings.HasSuffix(line.Name, "valid runs"):
			case line.Skipped != "":
				fmt.Fprintf(&table, "| %d. %s | - | skipped: %s |\n", section.Number, line.Name, line.Skipped)
			case line.Failed != "":
				fmt.Fprintf(&table, "| %d. %s | - | failed: %s |\n", section.Number, line.Name, line.Failed)
			case line.Missed():
				fmt.Fprintf(&table, "| %d. %s | %s | %s: missed |\n", section.Number, line.Name, line.Value(),
					line.Target)
			case line.Target != "":
				fmt.Fprintf(&table, "| %d. %s | %s | %s |\n", section.Number, line.Name, line.Value(), line.Target)
			}
		}
		if section.Error != "" {
			fmt.Fprintf(&table, "| %d. %s | - | failed: %s |\n", section.Number, section.Name, section.Error)
		}
	}
	return table.String()
}

// benchRuns is the number of runs of each load. The table has their medians.
const benchRuns = 3

// bench measures the standard set.
func bench(ctx context.Context, progress lab.Progress, duration time.Duration) (string, error) {
	compare, err := hotpath.FanoutCommand()
	if err != nil {
		return "", err
	}
	var table strings.Builder
	table.WriteString("| load | command | µs per forwarded packet | on Pion | ratio | the machine's limit | packets " +
		"per send | residence p50 / p99 / p99.9 | allocations per packet |\n")
	table.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	for _, load := range benchLoads {
		o := hotpath.Options{Load: hotpath.DefaultLoad(), Duration: duration, Compare: compare, Pacing: load.pacing,
			Progress: progress}
		o.Load.Receivers, o.Load.Mbps = load.receivers, load.mbps
		name := fmt.Sprintf("%s at %g Mbit/s, pacing %s", receivers(load.receivers), load.mbps, load.pacing)
		runs, err := hotpath.Repeat(ctx, name, benchRuns, o)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		table.WriteString(benchRow(name, o, runs))
	}
	return table.String(), nil
}

// benchRow returns the table's line for a load.
func benchRow(name string, o hotpath.Options, runs hotpath.Runs) string {
	of := func(figure func(*hotpath.Result) float64) float64 { return runs.Median(figure) }
	return fmt.Sprintf("| %s%s | `vollab forward --compare pion --receivers %d --mbps %g --pacing %s` | %.2f | %.2f "+
		"| %.2f | %s | %s | %s | %.3f |\n",
		name, unlessValid(runs), o.Load.Receivers, o.Load.Mbps, o.Pacing,
		of(func(r *hotpath.Result) float64 { return r.CPU }),
		of(func(r *hotpath.Result) float64 { return r.Compare.CPU }),
		of(func(r *hotpath.Result) float64 { return *r.CPURatio }),
		orDash("%.2f µs", runs.Figure(func(r *hotpath.Result) *float64 { return r.Ceiling })),
		orDash("%.1f", runs.Figure(func(r *hotpath.Result) *float64 { return r.SegmentsPerSend })),
		runs.Quantiles(func(r *hotpath.Result) *hotpath.Quantiles { return r.Residence }),
		of(func(r *hotpath.Result) float64 { return r.Allocations }))
}

func receivers(n int) string {
	if n == 1 {
		return "1 receiver"
	}
	return fmt.Sprintf("%d receivers", n)
}

// unlessValid returns a warning about results that should not be compared.
func unlessValid(runs hotpath.Runs) string {
	if runs.Valid() == len(runs) {
		return ""
	}
	return fmt.Sprintf(" (%d of %d runs not valid: losses, or a busy machine)", len(runs)-runs.Valid(), len(runs))
}

// orDash prints a figure, or a dash for nil.
func orDash(format string, figure *float64) string {
	if figure == nil {
		return "-"
	}
	return fmt.Sprintf(format, *figure)
}

// writeTable replaces the table between two lines of a document.
func writeTable(document string, between markers, table string) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, rest, begun := bytes.Cut(text, []byte(between.begin+"\n"))
	_, after, ended := bytes.Cut(rest, []byte(between.end+"\n"))
	if !begun || !ended {
		return fmt.Errorf("%s: %w %s and after it a line %s", document, errMarkers, between.begin, between.end)
	}
	info, err := os.Stat(document)
	if err != nil {
		return err
	}
	text = fmt.Appendf(nil, "%s%s\n%s%s\n%s", before, between.begin, table, between.end, after)
	return os.WriteFile(document, text, info.Mode().Perm())
}
