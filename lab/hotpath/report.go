package hotpath

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteJSON writes the result as one JSON object.
func (r *Result) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// row is one line of a table: a name, and a function that prints one server's figure, or a dash if the server does not
// report the figure.
type row struct {
	name  string
	print func(f *Figures) string
}

// rows are the lines of a result's table.
var rows = []row{
	{"server CPU per forwarded packet", func(f *Figures) string { return fmt.Sprintf("%.3f µs", f.CPU) }},
	{"server CPU per received packet", func(f *Figures) string { return fmt.Sprintf("%.3f µs", f.CPUReceived) }},
	{"server CPU, share of a core", func(f *Figures) string { return fmt.Sprintf("%.1f %%", 100*f.CPUShare) }},
	{"packets received", func(f *Figures) string { return fmt.Sprint(f.PacketsReceived) }},
	{"packets forwarded", func(f *Figures) string { return fmt.Sprint(f.PacketsForwarded) }},
	{"packets lost", func(f *Figures) string { return fmt.Sprint(f.PacketsLost) }},
	{"  lost at the receivers' sockets", func(f *Figures) string { return fmt.Sprint(f.ReceiverDrops) }},
	{"frames lost", func(f *Figures) string { return fmt.Sprint(f.FramesLost) }},
	{"residence p50 / p99 / p99.9", func(f *Figures) string { return f.Residence.String() }},
	{"hold by the pacer p50 / p99 / p99.9", func(f *Figures) string { return f.PacerHold.String() }},
	{"packet latency p50 / p99 / p99.9", func(f *Figures) string { return f.Latency.String() }},
	{"frame latency p50 / p99 / p99.9", func(f *Figures) string { return f.FrameLatency.String() }},
	{"packets per send", func(f *Figures) string {
		if f.SegmentsPerSend == nil {
			return "-"
		}
		return fmt.Sprintf("%.1f", *f.SegmentsPerSend)
	}},
	{"resident memory", func(f *Figures) string { return fmt.Sprintf("%.1f MB", float64(f.RSS)/1e6) }},
	{"goroutines", func(f *Figures) string { return fmt.Sprint(f.Goroutines) }},
	{"allocations per packet", func(f *Figures) string { return fmt.Sprintf("%.4f", f.Allocations) }},
	{"machine busy", func(f *Figures) string { return fmt.Sprintf("%.1f %%", 100*f.MachineBusy) }},
}

// String returns the three quantiles, or a dash.
func (q *Quantiles) String() string {
	if q == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f / %.0f / %.0f µs", q.P50, q.P99, q.P999)
}

// WriteText writes the result as a table.
func (r *Result) WriteText(w io.Writer) error {
	var text strings.Builder
	l := r.Load
	fmt.Fprintf(&text,
		"%d publishers, %d receivers, %d tracks, %d unwatched, %g Mbit/s at %g fps, %d packets per frame\n\n",
		l.Publishers, l.Receivers, l.Tracks, l.UnwatchedTracks, l.Mbps, l.FrameRate, l.packetsPerFrame())
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	columns := []*Figures{&r.Figures}
	fmt.Fprintf(table, "\t%s", r.Server)
	if r.Compare != nil {
		columns = append(columns, r.Compare)
		fmt.Fprintf(table, "\t%s", r.CompareServer)
	}
	fmt.Fprintln(table)
	for _, row := range rows {
		fmt.Fprint(table, row.name)
		for _, f := range columns {
			fmt.Fprint(table, "\t", row.print(f))
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush()
	resting := "slept"
	if r.ProcessorsAwake {
		resting = "were kept awake"
	}
	fmt.Fprintf(&text, "\nidle processors %s\n", resting)
	if r.CPURatio != nil {
		fmt.Fprintf(&text, "\nCPU per forwarded packet, relative to the other server: %.3f\n", *r.CPURatio)
	}
	if r.Ceiling != nil {
		fmt.Fprintf(&text, "the machine's limit for this load: %.3f µs (the server used %.2f times the limit)\n",
			*r.Ceiling, ratio(r.CPU, *r.Ceiling))
	}
	if f := &r.Figures; f.PacketsMissed > 0 {
		fmt.Fprintf(&text, "repairs: %d packets missed, %d recovered, %d retransmissions\n", f.PacketsMissed,
			f.PacketsRecovered, f.Retransmissions)
	}
	if !r.Valid {
		fmt.Fprintf(&text, "NOT valid: packets or frames were lost, or the machine was busier than %g %%\n",
			100*maxBusy)
	}
	_, err := io.WriteString(w, text.String())
	return err
}
