package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/volsfu/volsfu/internal/lab"
	"github.com/volsfu/volsfu/internal/lab/adaptation"
	"github.com/volsfu/volsfu/internal/lab/control"
	"github.com/volsfu/volsfu/internal/lab/experiment/claims"
	"github.com/volsfu/volsfu/internal/lab/firstlight"
	"github.com/volsfu/volsfu/internal/lab/hotpath"
	"github.com/volsfu/volsfu/internal/lab/interop"
	"github.com/volsfu/volsfu/internal/lab/layers"
	"github.com/volsfu/volsfu/internal/lab/pipeline"
	"github.com/volsfu/volsfu/internal/lab/topology/fidelity"
	"github.com/volsfu/volsfu/internal/lab/viewing"
)

// collection is a set of checks under one name.
type collection struct {
	name, short string
	checks      func(lab.Progress) []lab.Check
	// settings adds flags that the checks depend on; nil is none.
	settings func(*pflag.FlagSet)
}

// pipelineOptions are set by flags of check capture.
var pipelineOptions = pipeline.DefaultOptions()

// collections are the checks that there are.
var collections = []collection{
	{"first-light", "A conference of point clouds: frames, switches, losses, rooms, comings and goings", firstlight.Checks, nil},
	{"hot-path", "What forwarding costs, beside Pion's own media path and the machine's limit", hotpath.Checks, nil},
	{"congestion", "Rates, queues and repair that suit the path: links, falls, losses, wireless traces, competitors; uplinks", congestion, nil},
	{"interop", "Clients that others have made: VR2Gather's peer and connector, Unity, C; in a checkout with Go, whose tests it runs", interop.Checks, nil},
	{"capture", "From a depth camera to coded tiles and back: Draco from Go, colours, descriptions, RealSense, memory; partly in a checkout with Go", capture, captureFlags},
	{"lab", "The laboratory itself: experiments and their reports, paper 001's latencies, emulated networks, layers of latency; as root", laboratory, laboratoryFlags},
	{"viewer", "The pages for browsers, in Chromium: what arrives whole and how soon, memory, weight; in a checkout with Go and Node", viewer, viewerFlags},
}

// viewingOptions are set by flags of check viewer.
var viewingOptions = viewing.DefaultOptions()

func viewer(progress lab.Progress) []lab.Check { return viewing.Checks(viewingOptions, progress) }

func viewerFlags(f *pflag.FlagSet) {
	f.DurationVar(&viewingOptions.Endurance, "endurance", viewingOptions.Endurance, "how long two people are watched in the second check, and the tab's memory with them")
}

func capture(progress lab.Progress) []lab.Check { return pipeline.Checks(pipelineOptions, progress) }

func captureFlags(f *pflag.FlagSet) {
	f.DurationVar(&pipelineOptions.Endurance, "endurance", pipelineOptions.Endurance, "how long memory is watched in the last check")
}

// laboratoryOptions are set by flags of check lab.
var laboratoryOptions = claims.Options{Data: os.Getenv(lab.TestDataVariable)}

func laboratory(progress lab.Progress) []lab.Check {
	all, err := library()
	if err != nil {
		panic("the experiments that this program carries cannot be read, which its tests hold: " + err.Error())
	}
	o := laboratoryOptions
	o.Library, o.Version = all, version
	return slices.Concat(claims.Checks(o, progress), []lab.Check{fidelity.New(progress)}, layers.Checks(progress))
}

func laboratoryFlags(f *pflag.FlagSet) {
	f.StringVar(&laboratoryOptions.Data, "data", laboratoryOptions.Data, "folder of the test data; without, the synthetic figure stands in")
	f.StringVar(&laboratoryOptions.Folder, "out", "", "folder for the reports of the first check; without, they are removed")
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
	if c.settings != nil {
		c.settings(flags)
	}
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
