package timeline

import (
	"context"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/internal/peer"
)

// Command returns a command whose argument is the path of a recording. run gets the path, the standard output and the
// log.
func Command(
	name, short string, run func(ctx context.Context, path string, out io.Writer, log *slog.Logger) error,
) *cobra.Command {
	return &cobra.Command{
		Use:   name + " RECORDING",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			return run(cmd.Context(), arguments[0], cmd.OutOrStdout(), peer.NewLog(cmd.ErrOrStderr()))
		},
	}
}
