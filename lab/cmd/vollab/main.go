// Command vollab is the laboratory: it measures what volsfu claims.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// version is stamped by the linker.
var version = "dev"

// errMissed says that a figure missed its target, or that a check failed. The report has told which.
var errMissed = errors.New("not every target is met")

// errIncomplete says that no figure missed its target, and that not everything was measured.
var errIncomplete = errors.New("no target is missed, but not everything was measured")

// statusIncomplete is the exit status of errIncomplete.
const statusIncomplete = 2

func main() {
	if err := newRoot().Execute(); err != nil {
		var status exitStatus
		if errors.As(err, &status) {
			os.Exit(int(status))
		}
		fmt.Fprintln(os.Stderr, "vollab:", err)
		if errors.Is(err, errIncomplete) {
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
	root.AddCommand(newCheck(), newForward(), newControl(), newBench(), newLimit(), newFanout(), newPeer(), newProbe(), newPrepare(), newRun(), newLink(), newVersion())
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
