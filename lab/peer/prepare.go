package peer

import (
	"encoding/json"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/lab/carriage"
)

// PrepareCommand returns the command vollab prepare.
func PrepareCommand() *cobra.Command {
	p := carriage.DefaultPreparation()
	cmd := &cobra.Command{
		Use:   "prepare",
		Short: "Encode frames into a file that vollab peer publishes",
		Long: "Encode frames into a file, as fast as the machine can, for vollab peer --frames and volpeer " +
			"publish --source replay:FILE. The command prints the sizes and the encoding times of the frames as one " +
			"JSON object.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer cancel()
			report, err := carriage.Prepare(ctx, p)
			if err != nil {
				return err
			}
			encoder := json.NewEncoder(cmd.OutOrStdout())
			encoder.SetIndent("", "  ")
			return encoder.Encode(report)
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.Output, "output", "", "the file, which must not exist yet")
	f.IntVar(&p.Count, "count", p.Count, "captures to encode")
	f.Float64Var(&p.FPS, "fps", p.FPS, "captures per second of the source")
	f.IntSliceVar(&p.Sizes, "sizes", nil,
		"encode random bytes instead: one tile of each of these sizes, as in 1400000,2100000,200000")
	materialFlags(f, &p.Material)
	return cmd
}
