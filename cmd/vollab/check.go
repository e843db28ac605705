package main

import (
	"context"
	"fmt"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/internal/lab"
	"github.com/volsfu/volsfu/internal/lab/adaptation"
	"github.com/volsfu/volsfu/internal/lab/control"
	"github.com/volsfu/volsfu/internal/lab/firstlight"
	"github.com/volsfu/volsfu/internal/lab/hotpath"
)

// collection is a set of checks under one name.
type collection struct {
	name, short string
	checks      func(lab.Progress) []lab.Check
}

// collections are the checks that there are.
var collections = []collection{
	{"first-light", "A conference of point clouds: frames, switches, losses, rooms, comings and goings", firstlight.Checks},
	{"hot-path", "What forwarding costs, beside Pion's own media path and the machine's limit", hotpath.Checks},
	{"congestion", "Rates, queues and repair that suit the path: links, falls, losses, wireless traces, competitors; uplinks", congestion},
}

// congestion are the checks in virtual time, those of the uplink, and the first ones again end to end.
func congestion(progress lab.Progress) []lab.Check {
	return slices.Concat(control.Checks(progress), adaptation.Checks(progress), control.LiveChecks(progress))
}

func newCheck() *cobra.Command {
	check := &cobra.Command{
		Use:   "check",
		Short: "Measure the claims of one capability; the exit status tells whether every target is met",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, c := range collections {
		check.AddCommand(newCollection(c))
	}
	return check
}

func newCollection(c collection) *cobra.Command {
	var asJSON bool
	var only []int
	cmd := &cobra.Command{
		Use:   c.name,
		Short: c.short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer cancel()
			report, err := c.run(ctx, only, lab.NewProgress(cmd.ErrOrStderr()))
			if err != nil {
				return err
			}
			write := report.WriteText
			if asJSON {
				write = report.WriteJSON
			}
			if err := write(cmd.OutOrStdout()); err != nil {
				return err
			}
			if !report.Met {
				return errMissed
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&asJSON, "json", false, "print one JSON object instead of text")
	flags.IntSliceVar(&only, "only", nil, "run only the checks with these numbers, as in 3,5")
	return cmd
}

// run runs the chosen checks one after the other. An interruption ends the one that runs and leaves out the rest.
func (c collection) run(ctx context.Context, only []int, progress lab.Progress) (*lab.Report, error) {
	checks := c.checks(progress)
	for _, n := range only {
		if n < 1 || n > len(checks) {
			return nil, fmt.Errorf("--only %d: expected numbers from 1 to %d", n, len(checks))
		}
	}
	report := lab.NewReport(c.name, version)
	for i, check := range checks {
		if len(only) > 0 && !slices.Contains(only, i+1) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		report.Run(ctx, i+1, check, progress)
	}
	return report, nil
}
