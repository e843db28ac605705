// Command volsfu is the server: a selective forwarding unit for volumetric video conferencing.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/cmd/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/cmd/volsfu/internal/doctor"
	"github.com/volsfu/volsfu/cmd/volsfu/internal/operate"
	"github.com/volsfu/volsfu/internal/build"
)

// version is set by the linker.
var version = "dev"

func main() {
	if err := newRoot().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "volsfu:", err)
		os.Exit(statusOf(err))
	}
}

// Exit statuses other than 0, for scripts.
const (
	statusFailed      = 1
	statusUnreachable = 3
	statusRefused     = 4
	statusAbsent      = 5
)

// statusOf returns the exit status for the error of a command.
func statusOf(err error) int {
	switch {
	case errors.Is(err, operate.ErrUnreachable):
		return statusUnreachable
	case errors.Is(err, operate.ErrRefused):
		return statusRefused
	case errors.Is(err, operate.ErrAbsent):
		return statusAbsent
	default:
		return statusFailed
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "volsfu",
		Version:       build.Line("volsfu", version),
		Short:         "A selective forwarding unit for volumetric video conferencing",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(newServe(), newVR2Gather(), newConfig(), newToken(), newVersion())
	root.AddCommand(operate.Commands()...)
	root.AddCommand(doctor.Command(), cluster.Command())
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), build.Line("volsfu", version))
		},
	}
}
