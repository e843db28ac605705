package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/volsfu/volsfu/internal/netfn/control"
	"github.com/volsfu/volsfu/internal/netfn/edge"
)

// WriteStatus writes the document of an edge as it is or as tables.
func WriteStatus(w io.Writer, document json.RawMessage, asJSON bool, now time.Time) error {
	if asJSON {
		_, err := fmt.Fprintln(w, string(bytes.TrimSpace(document)))
		return err
	}
	var s Status
	if err := json.Unmarshal(document, &s); err != nil {
		return fmt.Errorf("read the state of the edge: %w", err)
	}
	return s.write(w, now)
}

// WriteEdges writes the edges of a controller as a table. The state of a single edge follows.
func WriteEdges(w io.Writer, edges []control.EdgeState, now time.Time) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "edge\tstate\tlast poll\torders\n")
	for _, e := range edges {
		state, last := "absent", "-"
		if e.Connected {
			state = "connected"
		}
		if !e.LastPoll.IsZero() {
			last = now.Sub(e.LastPoll).Round(time.Second).String() + " ago"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\n", e.Name, state, last, len(e.Orders))
	}
	if err := table.Flush(); err != nil || len(edges) != 1 {
		return err
	}
	writeOrders(table, edges[0].Orders)
	if err := table.Flush(); err != nil || edges[0].Status == nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return WriteStatus(w, edges[0].Status, false, now)
}

func writeOrders(w io.Writer, orders []control.OrderState) {
	if len(orders) == 0 {
		return
	}
	fmt.Fprint(w, "\nrule\torder\tstate\n")
	for _, o := range orders {
		rule, text := o.Rule, o.Copies
		if rule == "" {
			rule = "every rule"
		}
		if text == "" {
			text = o.Trigger
		}
		if !o.Expires.IsZero() {
			text += " until " + o.Expires.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", rule, text, strings.TrimSuffix(o.State+": "+o.Error, ": "))
	}
}

// write writes the state of an edge as tables.
func (s Status) write(w io.Writer, now time.Time) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "edge\t%s, peer %s, version %s\n", s.Name, s.Peer, s.Version)
	since := "attached"
	if s.Readopted {
		since = "readopted"
	}
	fmt.Fprintf(table, "%s\t%s ago\n", since, now.Sub(s.Started).Round(time.Second))
	peer := "does not answer"
	if s.PeerAlive {
		peer = "answers"
	}
	fmt.Fprintf(table, "peer\t%s\n", peer)
	if s.Format != "" {
		fmt.Fprintf(table, "sender\t%s, epoch %d, %d packets selected, cost factor %.2f\n", s.Format, s.Epoch,
			s.Sent.Packets, s.Sent.CostFactor)
	}
	if c := s.Controller; c != nil {
		answers := "answers"
		if !c.Connected {
			answers = strings.TrimSuffix("does not answer: "+c.Error, ": ")
		}
		fmt.Fprintf(table, "controller\t%s %s\n", c.URL, answers)
	}
	s.writePaths(table)
	s.writeRules(table)
	return table.Flush()
}

func (s Status) writePaths(w io.Writer) {
	fmt.Fprint(w, "\npath\tinterface\tstate\tsent\treceived\tfirst\trepeated\toutside\tloss\tin time\tdelay\n")
	for _, p := range s.Paths {
		report := "-\t-\t-"
		if r := p.Report; r != nil {
			report = fmt.Sprintf("%.1f %%\t%.1f %%\t%.1f ms", 100*r.Loss, 100*r.InTime, 1000*r.DelaySeconds)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\n", p.Name, p.Interface, p.State, p.Sent.Packets,
			p.Received.Packets, p.Received.First, p.Received.Repeated, p.Received.Outside, report)
	}
}

func (s Status) writeRules(w io.Writer) {
	if len(s.Rules) == 0 {
		return
	}
	fmt.Fprint(w, "\nrule\tcopies\tpaths\tprobes\ttrigger\treason\n")
	for _, r := range s.Rules {
		trigger, reason := "stopped", r.Reason
		if reason == "" {
			reason = "-"
		}
		switch {
		case r.Copies.Mode != edge.CopiesAuto:
			trigger = "-"
		case r.Triggered:
			trigger = "started"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, r.Copies, list(r.Set), list(r.Probes), trigger, reason)
	}
}

// list returns names with commas between them.
func list(names []string) string {
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, ",")
}
