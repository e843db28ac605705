// Command vollab is the laboratory: it measures the claims of volsfu. Package lab lists the parts.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/internal/build"
	"github.com/volsfu/volsfu/lab/agent"
	"github.com/volsfu/volsfu/lab/bench"
	"github.com/volsfu/volsfu/lab/check"
	"github.com/volsfu/volsfu/lab/cluster/plan"
	"github.com/volsfu/volsfu/lab/control"
	"github.com/volsfu/volsfu/lab/direct"
	"github.com/volsfu/volsfu/lab/experiment/library"
	"github.com/volsfu/volsfu/lab/leaderboard"
	"github.com/volsfu/volsfu/lab/link"
	"github.com/volsfu/volsfu/lab/peer"
	"github.com/volsfu/volsfu/lab/probe"
	"github.com/volsfu/volsfu/lab/reproduction"
	"github.com/volsfu/volsfu/lab/rival"
	"github.com/volsfu/volsfu/lab/wallclock"
)

// version is set by the linker.
var version = "dev"

const (
	// statusIncomplete is the exit status for check.ErrIncomplete.
	statusIncomplete = 2
	// statusNothing is the exit status for direct.ErrNothing.
	statusNothing = 3
)

func main() {
	err := wallclock.Err()
	if err == nil {
		err = newRoot().Execute()
	}
	if err != nil {
		if !errors.As(err, new(link.ExitStatus)) {
			fmt.Fprintln(os.Stderr, "vollab:", err)
		}
		os.Exit(exitCode(err))
	}
}

// exitCode returns the exit status for the error of a command.
func exitCode(err error) int {
	var status link.ExitStatus
	switch {
	case errors.As(err, &status):
		return int(status)
	case errors.Is(err, check.ErrIncomplete):
		return statusIncomplete
	case errors.Is(err, direct.ErrNothing):
		return statusNothing
	default:
		return 1
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "vollab",
		Version:       build.Line("vollab", version),
		Short:         "Measure the claims of volsfu",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(
		check.Command(version),
		bench.Command(version), bench.ForwardCommand(), bench.LimitCommand(), bench.FanoutCommand(),
		control.Command(),
		plan.Command(),
		library.Command(version), library.ReportCommand(), library.DiffCommand(),
		reproduction.Command(version),
		leaderboard.DataCommand(),
		link.Command(),
		peer.Command(), peer.PrepareCommand(), agent.Command(),
		probe.Command(),
		rival.Command(),
		newVersion(),
	)
	root.AddCommand(measuringCommands()...)
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), build.Line("vollab", version))
		},
	}
}
