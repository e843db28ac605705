package plan

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// Command returns vollab cluster.
func Command() *cobra.Command {
	cmd := &cobra.Command{Use: "cluster", Short: "Plan clusters of servers"}
	cmd.AddCommand(command())
	return cmd
}

func command() *cobra.Command {
	p := Default()
	var qualities, regions []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Compute what a cluster carries, and the number of nodes that it needs",
		Long: "Compute the traffic of clients and between nodes, processor time, messages between nodes, and the " +
			"work after the death of a node. docs/cluster.md explains the model and has the sources of its figures.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if p.Qualities, err = parseQualities(qualities); err != nil {
				return err
			}
			if p.Regions, err = parseRegions(regions); err != nil {
				return err
			}
			p.Link *= 1e9
			result, err := Compute(p)
			if err != nil {
				return err
			}
			if asJSON {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(struct {
					Plan Plan `json:"plan"`
					Result
				}{p, result})
			}
			return write(cmd.OutOrStdout(), &p, &result)
		},
	}
	f := cmd.Flags()
	f.IntVar(&p.Rooms, "rooms", p.Rooms, "rooms at the same time")
	f.IntVar(&p.Participants, "participants", p.Participants,
		"participants of a room that publish an object and receive")
	f.IntVar(&p.Viewers, "viewers", p.Viewers, "participants of a room that only receive")
	f.IntVar(&p.Watched, "watched", p.Watched, "objects that each participant receives; 0: all of the others")
	f.IntVar(&p.Tiles, "tiles", p.Tiles, "tiles of an object")
	f.StringSliceVar(&qualities, "qualities", []string{"1.25:0.2", "2.5:0.3", "5:0.5"},
		"rate of an object in Mbit/s for each quality, each with the share of the receivers that get it")
	f.Float64Var(&p.Seen, "seen", p.Seen, "share of an object's tiles that a receiver gets")
	f.Float64Var(&p.Poses, "poses", p.Poses, "poses per second of each object")
	f.DurationVar(&p.Stay, "stay", p.Stay, "time for which a participant stays")
	f.IntVar(&p.Nodes, "nodes", p.Nodes, "nodes of the cluster")
	f.StringSliceVar(&regions, "regions", []string{"1"}, "shares of the participants by region")
	f.Float64Var(&p.Spilled, "spilled", p.Spilled, "share of the rooms that span two nodes of a region")
	f.BoolVar(&p.Anywhere, "anywhere", p.Anywhere, "place participants on random nodes, for comparison")
	f.IntVar(&p.FanOut, "fanout", p.FanOut, "copies of an object that its origin sends at most; 0: all")
	p.Link /= 1e9
	f.Float64Var(&p.Link, "link", p.Link, "rate of a node's network in one direction, in Gbit/s")
	f.IntVar(&p.Cores, "cores", p.Cores, "processor cores of a node")
	f.Float64Var(&p.Use, "use", p.Use, "share of network and processor that is planned with")
	f.BoolVar(&asJSON, "json", false, "print plan and result as JSON")
	return cmd
}

// parseQualities parses RATE:SHARE, or RATE for a single quality. Errors wrap ErrPlan.
func parseQualities(texts []string) ([]Quality, error) {
	var qualities []Quality
	for _, text := range texts {
		rate, share, found := strings.Cut(text, ":")
		if !found {
			share = "1"
		}
		r, err := strconv.ParseFloat(rate, 64)
		if err == nil {
			var s float64
			s, err = strconv.ParseFloat(share, 64)
			qualities = append(qualities, Quality{r * 1e6, s})
		}
		if err != nil {
			return nil, fmt.Errorf("%w: quality %q, expected RATE:SHARE such as 2.5:0.3", ErrPlan, text)
		}
	}
	return qualities, nil
}

func parseRegions(texts []string) ([]float64, error) {
	var shares []float64
	for _, text := range texts {
		share, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: region %q, expected a share such as 0.6", ErrPlan, text)
		}
		shares = append(shares, share)
	}
	return shares, nil
}

// write prints a result as a table.
func write(to io.Writer, p *Plan, r *Result) error {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	row := func(name, format string, values ...any) {
		_, _ = fmt.Fprintf(w, "%s\t"+format+"\n", append([]any{name}, values...)...)
	}
	row("room", "")
	row("  from publishers, to receivers, between nodes", "%s, %s, %s", rate(r.Room.Up), rate(r.Room.Down),
		rate(r.Room.Trunk))
	row("  nodes of a room", "%.2f", r.Room.Nodes)
	row("  copies of an object to other nodes", "%.2f, %.2f of them from its origin; hops at most: %d", r.Room.Copies,
		r.Room.Sent, r.Room.Hops)
	row("cluster", "")
	row("  participants", "%d", r.Cluster.Participants)
	row("  from publishers, to receivers, between nodes", "%s, %s, %s", rate(r.Cluster.Up), rate(r.Cluster.Down),
		rate(r.Cluster.Trunk))
	row("  cores", "%.1f", r.Cluster.Cores)
	row("  nodes at least", "%d by the network, %d by the processor", r.Cluster.NodesByLink, r.Cluster.NodesByCores)
	row(fmt.Sprintf("each of %d nodes", p.Nodes), "")
	row("  participants", "%.0f", r.Node.Participants)
	row("  egress, ingress, trunks among them", "%s, %s, %s", rate(r.Node.Egress), rate(r.Node.Ingress),
		rate(r.Node.Trunk))
	row("  packets in and out", "%.0f/s", r.Node.Packets)
	row("  used network, processor", "%.1f %%, %.1f %%", 100*r.Node.Link, 100*r.Node.Cores)
	row("messages between nodes, received by each", "")
	row("  beats", "%.0f/s of %d bytes", r.State.Beats, r.State.BeatBytes)
	row("  joins and leaves", "%.1f/s, a join with its object has %d bytes", r.State.Changes, r.State.JoinBytes)
	row("  a room for a node that enters it", "%d bytes", r.State.SnapshotBytes)
	row("  beats and changes together", "%s", rate(r.State.Rate))
	row("  poses on trunks", "%.0f/s", r.State.Poses)
	if p.Nodes > 1 {
		row("after the death of a node, each other node", "")
		row("  used network, processor", "%.1f %%, %.1f %%", 100*r.Failure.Link, 100*r.Failure.Cores)
		row("  all cores busy with connections of clients for", "%v", r.Failure.Setup.Round(time.Millisecond))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	// Headings have no value.
	for line := range strings.Lines(table.String()) {
		if _, err := fmt.Fprintln(to, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// rate formats a rate in bit/s.
func rate(bps float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e12, "Tbit/s"}, {1e9, "Gbit/s"}, {1e6, "Mbit/s"}} {
		if bps >= unit.size {
			return fmt.Sprintf("%.2f %s", bps/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%.0f kbit/s", bps/1e3)
}
