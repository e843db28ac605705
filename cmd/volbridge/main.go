// Command volbridge connects VR2Gather's native connector, and Unity through it, to a server, in place of VR2Gather's
// own peer.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/relay"
	"github.com/volsfu/volsfu/internal/build"
)

// version is set by the linker.
var version = "dev"

func main() {
	// The first signal ends the bridge in order, a second one at once.
	ctx, restore := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, restore)
	root := newRoot()
	root.SetArgs(arguments(os.Args[1:]))
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "volbridge:", err)
		os.Exit(1)
	}
}

func newRoot() *cobra.Command {
	var options relay.Options
	root := &cobra.Command{
		Use:           "volbridge",
		Version:       build.Line("volbridge", version),
		Short:         "Connect VR2Gather's native connector to a server, in place of VR2Gather's own peer",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return options.Run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), options.NewLog(cmd.ErrOrStderr()))
		},
	}
	options.Flags(root.Flags())
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(&cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), build.Line("volbridge", version))
		},
	})
	return root
}

// arguments converts the program's arguments to the form of its flags. VR2Gather starts its own peer with a long flag
// after one hyphen, and may use short flags after two.
func arguments(started []string) []string {
	args := append([]string(nil), started...)
	for i, arg := range args {
		flag, _, _ := strings.Cut(arg, "=")
		switch {
		case flag == "-sfu":
			args[i] = "-" + arg
		case len(flag) == 3 && strings.HasPrefix(flag, "--"):
			args[i] = arg[1:]
		}
	}
	return args
}
