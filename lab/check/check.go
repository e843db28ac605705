// Package check runs the checks of a collection and prints one report (vollab check). Each check has its own process,
// so that the crash of a server ends one check only.
package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/awake"
	"github.com/volsfu/volsfu/lab/environment"
)

// ErrMissed is returned if a figure missed its target or a check failed. The report names the figure.
var ErrMissed = errors.New("not every target is met")

// ErrIncomplete is returned if no figure missed its target, but a part was not measured.
var ErrIncomplete = errors.New("no target is missed, but not everything was measured")

// Command returns the command vollab check. The version is for reports.
func Command(version string) *cobra.Command {
	check := &cobra.Command{
		Use: "check",
		Short: "Measure the claims of one capability; the exit status is 0 if every target is met, 1 if one is " +
			"missed, 2 if not everything was measured",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, c := range collections(version) {
		check.AddCommand(newCollection(c, version))
	}
	return check
}

func newCollection(c collection, version string) *cobra.Command {
	var asJSON, inside bool
	var only []int
	var checks checklist
	cmd := &cobra.Command{
		Use:   c.name,
		Short: c.short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer cancel()
			progress := lab.NewProgress(cmd.ErrOrStderr())
			if inside {
				// The parent process closes the standard input when it no longer wants the report.
				go func() {
					_, _ = io.Copy(io.Discard, cmd.InOrStdin())
					cancel()
				}()
			}
			measure := measureHere
			if !inside {
				var err error
				if measure, err = measureInSubprocess(c.name, cmd.Flags(), cmd.ErrOrStderr()); err != nil {
					return err
				}
			}
			report := lab.NewReport(c.name, version)
			if !inside {
				var err error
				if report.Environment, err = environment.Read(ctx, os.Getenv(lab.TestDataVariable)); err != nil {
					return err
				}
			}
			if err := c.run(ctx, report, checks(progress), only, measure, progress); err != nil {
				return err
			}
			write := report.WriteText
			if asJSON {
				write = report.WriteJSON
			}
			if err := write(cmd.OutOrStdout()); err != nil {
				return err
			}
			switch {
			case report.Missed > 0:
				return ErrMissed
			case report.Incomplete:
				return ErrIncomplete
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&asJSON, jsonFlag, false, "print one JSON object instead of text")
	flags.IntSliceVar(&only, onlyFlag, nil, "run only the checks with these numbers, as in 3,5")
	flags.BoolVar(&inside, insideFlag, false, "measure in this process, which a server that crashes may end")
	_ = flags.MarkHidden(insideFlag) // fails only for a flag that does not exist
	checks = c.bind(flags)
	return cmd
}

// run runs the chosen checks one after the other and adds their results to the report. An interruption ends the running
// check and skips the rest; then the report is incomplete.
func (c collection) run(
	ctx context.Context, report *lab.Report, checks []lab.Check, only []int, measure measurement, progress lab.Progress,
) error {
	for _, n := range only {
		if n < 1 || n > len(checks) {
			return fmt.Errorf("--only %d: expected numbers from 1 to %d", n, len(checks))
		}
	}
	if c.punctual {
		defer awake.Hold()()
	}
	for i, check := range checks {
		if len(only) > 0 && !slices.Contains(only, i+1) {
			continue
		}
		if ctx.Err() != nil {
			report.Incomplete = true
			break
		}
		measure(ctx, report, i+1, check, progress)
	}
	return nil
}
