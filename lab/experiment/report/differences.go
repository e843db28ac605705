package report

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/volsfu/volsfu/lab/experiment"
)

// WriteDifferences writes a table of the figures that differ in two runs, or of all figures.
func WriteDifferences(differences []experiment.Difference, all bool, w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "cell\tfigure\tA\tB\tA / B\tp")
	significant := 0
	for i := range differences {
		d := &differences[i]
		if d.Significant() {
			significant++
		} else if !all {
			continue
		}
		a, b := experiment.Summary{Quantity: d.Quantity, Statistics: d.A}, experiment.Summary{Statistics: d.B}
		ratio := "–"
		if d.Ratio != nil {
			ratio = fmt.Sprintf("%s to %s", Number(d.Ratio.Low), Number(d.Ratio.High))
		}
		_, _ = fmt.Fprintf(table, "%s\t%s, %s\t%s\t%s\t%s\t%.3f\n", d.Cell, d.Quantity.Label, d.Quantity.Unit,
			measured(&a), measured(&b), ratio, d.P)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d of %d figures differ at the level of 5 %%, corrected for their number (Holm)\n",
		significant, len(differences))
	return err
}
