// Command vollab is the laboratory: it measures what volsfu claims.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/lab/bench"
	"github.com/volsfu/volsfu/lab/check"
	"github.com/volsfu/volsfu/lab/control"
	"github.com/volsfu/volsfu/lab/experiment/library"
	"github.com/volsfu/volsfu/lab/link"
	"github.com/volsfu/volsfu/lab/peer"
	"github.com/volsfu/volsfu/lab/probe"
)

// version is stamped by the linker.
var version = "dev"

// statusIncomplete is the exit status of check.ErrIncomplete.
const statusIncomplete = 2

func main() {
	if err := newRoot().Execute(); err != nil {
		var status link.ExitStatus
		if errors.As(err, &status) {
			os.Exit(int(status))
		}
		fmt.Fprintln(os.Stderr, "vollab:", err)
		if errors.Is(err, check.ErrIncomplete) {
			os.Exit(statusIncomplete)
		}
		os.Exit(1)
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "vollab",
		Short:         "Measure what volsfu claims",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(
		check.Command(version),
		bench.Command(version), bench.ForwardCommand(), bench.LimitCommand(), bench.FanoutCommand(),
		control.Command(),
		library.Command(version),
		link.Command(),
		peer.Command(), peer.PrepareCommand(),
		probe.Command(),
		newVersion(),
	)
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), "vollab", version)
		},
	}
}
