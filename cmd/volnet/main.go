// Command volnet copies packets onto several paths and passes the first copy of each: an edge at each end of the paths,
// and a controller for the orders of operators.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/internal/build"
)

// version is set by the linker.
var version = "dev"

// Exit statuses other than 0.
const (
	// statusFailed: a running edge or controller, or a request, has failed.
	statusFailed = 1
	// statusInvalid: the command line, the configuration or the host does not permit the command. Nothing was changed.
	statusInvalid = 2
)

func main() {
	// The first signal ends the program in order, a second signal at once.
	ctx, restore := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, restore)
	os.Exit(run(ctx, newRoot()))
}

// failure is the error of a command that was permitted and failed. All other errors are those of invalid use.
type failure struct{ error }

// failed returns the error of a command that failed while it ran, nil for nil.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return failure{err}
}

// run runs the command line and returns the exit status. An error is one line on standard error.
func run(ctx context.Context, root *cobra.Command) int {
	root.Version = build.Line("volnet", version)
	root.SetVersionTemplate("{{.Version}}\n")
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(root.ErrOrStderr(), "volnet:", strings.ReplaceAll(err.Error(), "\n", "; "))
	if errors.As(err, new(failure)) {
		return statusFailed
	}
	return statusInvalid
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), build.Line("volnet", version))
		},
	}
}
