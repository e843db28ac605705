package library

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/report"
)

// ReportCommand returns the command vollab report.
func ReportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "report FOLDER...",
		Short: "Compute reports again from the journals of runs",
		Long: `Compute reports again from the journals of runs. A FOLDER is the folder of one experiment, as vollab run
writes it. The report there is replaced. The journal (` + experiment.JournalFile + `) has the figures and
samples of every iteration, so an unchanged program writes identical figures.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, folders []string) error {
			l, err := New()
			if err != nil {
				return err
			}
			var failed error
			for _, folder := range folders {
				r, err := l.Reopen(folder)
				if err == nil {
					err = errors.Join(report.Write(r, folder), report.WriteText(r, cmd.OutOrStdout()))
				}
				if err != nil {
					failed = errors.Join(failed, fmt.Errorf("%s: %w", folder, err))
				}
			}
			return failed
		},
	}
}

// DiffCommand returns the command vollab diff.
func DiffCommand() *cobra.Command {
	all, asJSON := false, false
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare the figures of two runs of an experiment",
		Long: `Compare the figures of two runs of an experiment, from their journals. A and B are folders of one
experiment, as vollab run writes them. The values of iterations are compared by Welch's test, corrected for
the number of figures.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, folders []string) error {
			l, err := New()
			if err != nil {
				return err
			}
			var runs [2]*experiment.Result
			for i, folder := range folders {
				if runs[i], err = l.Reopen(folder); err != nil {
					return fmt.Errorf("%s: %w", folder, err)
				}
			}
			differences, err := experiment.Differences(runs[0], runs[1])
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(differences)
			}
			return report.WriteDifferences(differences, all, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "print all figures, not only those that differ")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print all figures as JSON")
	return cmd
}
