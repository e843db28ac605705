package control

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteJSON writes the result as one JSON object.
func (r *Result) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// WriteText writes the result as a table.
func (r *Result) WriteText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, values ...any) {
		_, _ = fmt.Fprintf(table, "%s\t"+format+"\n", append([]any{name}, values...)...)
	}
	optional := func(name, unit string, value *float64) {
		if value != nil {
			row(name, "%.3g %s", *value, unit)
		}
	}
	classRows := func(name string, c *ClassFigures) {
		if c == nil {
			return
		}
		row(name+" packets / marked / dropped", "%d / %d / %d", c.Packets, c.Marked, c.Dropped)
		row(name+" queue p50 / p99 / max", "%.2f / %.2f / %.2f ms", c.P50, c.P99, c.Max)
	}
	row("case", "%s", r.Case)
	row("utilisation", "%.1f %% (%.1f %% of the link's rate)", 100*r.Utilisation, 100*r.ShareOfCapacity)
	row("mean estimate", "%.1f %% of the link's rate", 100*r.EstimateShare)
	row("queue p50 / p95 / p99 / max", "%.1f / %.1f / %.1f / %.1f ms", r.Queue.P50, r.Queue.P95, r.Queue.P99,
		r.Queue.Max)
	classRows("low-latency", r.LowLatency)
	classRows("classic", r.Classic)
	optional("audio queue p99", "ms", r.AudioQueue)
	row("frame latency p50 / p95 / p99", "%.1f / %.1f / %.1f ms", r.Latency.P50, r.Latency.P95, r.Latency.P99)
	row("frames sent", "%d", r.FramesSent)
	row("frames undecodable", "%d", r.FramesUndecodable)
	row("frames dropped whole", "%d", r.FramesDroppedWhole)
	row("packets dropped by the queue", "%d", r.PacketsDiscarded)
	row("repair overhead", "%.1f %%", 100*r.RepairOverhead)
	row("padding of probes", "%.2f %% of media", 100*r.PaddingOverhead)
	optional("time to the target", "s", r.SecondsToTarget)
	optional("recovery", "s", r.RecoverySeconds)
	optional("queue above 50 ms after the fall", "s", r.QueueSeconds)
	optional("quality lower after the fall", "s", r.QualitySeconds)
	optional("share of fair", "", r.ShareOfFair)
	optional("Jain's index", "", r.JainIndex)
	if o := r.Others; o != nil {
		row("the others' loss and p95 queue, first 3 s", "%.3f %%, %.1f ms", 100*o.Loss, o.QueueP95)
		optional("the others' share of fair", "", o.ShareOfFair)
	}
	if c := r.Cliff; c != nil {
		row("longest queue after the fall", "%.1f ms", c.LongestQueue)
		row("queue below 5 ms after the fall", "%.3f s", c.ShortAfter)
	}
	optional("packets with another codepoint after", "s", r.FallbackSeconds)
	for _, c := range r.Codepoints {
		row("codepoint "+c.Codepoint, "from %.3f s", c.Seconds)
	}
	optional("first mark after", "s", r.FirstMarkSeconds)
	if r.Room != nil {
		r.Room.write(table)
	}
	if e := r.Emulation; e != nil {
		verdict := "valid"
		if !e.Valid {
			verdict = "NOT VALID: " + e.Reason
		}
		row("packets late p95 / p99.9", "%.2f / %.2f ms, %s", e.LateP95, e.LateP999, verdict)
		if e.Disturbance != "" {
			row("disturbance", "%s", e.Disturbance)
		}
	}
	return table.Flush()
}
