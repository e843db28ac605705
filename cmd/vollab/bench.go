package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/internal/lab"
	"github.com/volsfu/volsfu/internal/lab/hotpath"
)

// The lines of a document between which the standard set's table stands.
const (
	benchBegin = "<!-- vollab bench -->"
	benchEnd   = "<!-- end of vollab bench -->"
)

// errMarkers says that a document has no place for the table.
var errMarkers = errors.New("expected a line " + benchBegin + " and after it a line " + benchEnd)

// benchLoads is the standard set: as many receivers as a small room has, one, and as many as a lecture.
var benchLoads = []struct {
	receivers int
	mbps      float64
	pacing    hotpath.Pacing
}{
	{10, 50, hotpath.PacingOff},
	{10, 50, hotpath.PacingOn},
	{1, 50, hotpath.PacingOff},
	{50, 10, hotpath.PacingOff},
}

func newBench() *cobra.Command {
	var document string
	var seconds float64
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a short standard set of loads beside a minimal fan-out server on Pion, as a table in Markdown",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			table, err := bench(cmd, time.Duration(seconds*float64(time.Second)))
			if err != nil {
				return err
			}
			if document == "" {
				_, err = io.WriteString(cmd.OutOrStdout(), table)
				return err
			}
			return writeTable(document, table)
		},
	}
	cmd.Flags().StringVar(&document, "write", "", "document whose table is replaced, the one between "+benchBegin+" and "+benchEnd)
	cmd.Flags().Float64Var(&seconds, "seconds", 5, "how long each server is measured")
	return cmd
}

// bench measures the standard set.
func bench(cmd *cobra.Command, duration time.Duration) (string, error) {
	ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	compare, err := hotpath.FanoutCommand()
	if err != nil {
		return "", err
	}
	var table strings.Builder
	table.WriteString("| load | command | µs per forwarded packet | on Pion | ratio | the machine's limit | packets per send | residence p50 / p99 / p99.9 | allocations per packet |\n")
	table.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	for _, load := range benchLoads {
		o := hotpath.Options{Load: hotpath.DefaultLoad(), Duration: duration, Compare: compare, Pacing: load.pacing, Progress: lab.NewProgress(cmd.ErrOrStderr())}
		o.Load.Receivers, o.Load.Mbps = load.receivers, load.mbps
		result, err := forward(ctx, o)
		if err != nil {
			return "", fmt.Errorf("%d receivers, pacing %s: %w", load.receivers, load.pacing, err)
		}
		fmt.Fprintf(&table, "| %s at %g Mbit/s, pacing %s%s | `vollab forward --compare pion --receivers %d --mbps %g --pacing %s` | %.2f | %.2f | %.2f | %s | %s | %s | %.3f |\n",
			receivers(load.receivers), load.mbps, load.pacing, unlessValid(result), load.receivers, load.mbps, load.pacing,
			result.CPU, result.Compare.CPU, *result.CPURatio, ceiling(result), perSend(&result.Figures), result.Residence, result.Allocations)
	}
	return table.String(), nil
}

func receivers(n int) string {
	if n == 1 {
		return "1 receiver"
	}
	return fmt.Sprintf("%d receivers", n)
}

// unlessValid warns of a result that should not be compared.
func unlessValid(r *hotpath.Result) string {
	if r.Valid {
		return ""
	}
	return " (not valid: losses, or a busy machine)"
}

// ceiling is what the machine allows, or a dash where that was not measured.
func ceiling(r *hotpath.Result) string {
	if r.Ceiling == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f µs", *r.Ceiling)
}

func perSend(f *hotpath.Figures) string {
	if f.SegmentsPerSend == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", *f.SegmentsPerSend)
}

// writeTable replaces the table of a document.
func writeTable(document, table string) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, rest, begun := bytes.Cut(text, []byte(benchBegin+"\n"))
	_, after, ended := bytes.Cut(rest, []byte(benchEnd+"\n"))
	if !begun || !ended {
		return fmt.Errorf("%s: %w", document, errMarkers)
	}
	info, err := os.Stat(document)
	if err != nil {
		return err
	}
	text = fmt.Appendf(nil, "%s%s\n%s%s\n%s", before, benchBegin, table, benchEnd, after)
	return os.WriteFile(document, text, info.Mode().Perm())
}
