package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/internal/admin"
)

// Commands returns the commands.
func Commands() []*cobra.Command { return []*cobra.Command{rooms(), nodes(), kick(), drain()} }

func rooms() *cobra.Command {
	var client Client
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rooms [ROOM]",
		Short: "List the rooms of a running server, or the participants of a room",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			var answer struct {
				Rooms  []admin.Room
				Failed []admin.Failure
			}
			var text []byte
			var err error
			table := func(w io.Writer) { writeRooms(w, answer.Rooms) }
			if len(arguments) == 0 {
				text, err = client.get(cmd.Context(), "rooms", &answer)
			} else {
				var room struct {
					admin.Room
					Failed []admin.Failure
				}
				text, err = client.get(cmd.Context(), "rooms/"+segment(arguments[0]), &room)
				answer.Failed = room.Failed
				table = func(w io.Writer) { writeParticipants(w, room.Participants, time.Now()) }
			}
			if err != nil {
				return err
			}
			for _, failure := range answer.Failed {
				cmd.PrintErrf("volsfu: participants of node %s are missing: %s\n", printable(failure.Node),
					printable(failure.Error))
			}
			return show(cmd, asJSON, text, table)
		},
	}
	client.Flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer of the server as JSON, with all of its fields")
	return cmd
}

// show prints an answer as JSON or as a table.
func show(cmd *cobra.Command, asJSON bool, text []byte, table func(io.Writer)) error {
	if asJSON {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", text)
		return err
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	table(w)
	return w.Flush()
}

// writeRooms writes the rooms, with their nodes if the server is a node of a cluster.
func writeRooms(w io.Writer, rooms []admin.Room) {
	clustered := slices.ContainsFunc(rooms, func(r admin.Room) bool { return len(r.Nodes) > 0 })
	_, _ = fmt.Fprintln(w, "ROOM\tPARTICIPANTS\tPUBLICATIONS\tSENT"+column(clustered, "NODES"))
	for _, room := range rooms {
		publications, sent := 0, 0.0
		for _, p := range room.Participants {
			publications += len(p.Publications)
			if p.Reception != nil {
				sent += float64(p.Reception.Sent)
			}
		}
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%s%s\n", printable(room.Name), len(room.Participants), publications,
			megabits(sent), column(clustered, printable(strings.Join(room.Nodes, ","))))
	}
}

// column returns a column of a table with a value, empty if the column is absent.
func column(present bool, value string) string {
	if !present {
		return ""
	}
	return "\t" + value
}

// writeParticipants writes participants, with their nodes if the server is a node of a cluster.
func writeParticipants(w io.Writer, participants []admin.Participant, now time.Time) {
	clustered := slices.ContainsFunc(participants, func(p admin.Participant) bool { return p.Node != "" })
	_, _ = fmt.Fprintln(w, "PARTICIPANT\tSTATE\tFOR\tPUBLICATIONS\tSENT\tESTIMATE\tRTT\tTOKEN ID"+
		column(clustered, "NODE"))
	for _, p := range participants {
		state, present := "connected", "-"
		switch {
		case !p.Present:
			state = "away"
		case !p.Connected:
			state = "connecting"
		}
		if p.Present {
			present = now.Sub(p.Joined).Round(time.Second).String()
		}
		sent, estimate, trip := "-", "-", "-"
		if r := p.Reception; r != nil {
			sent, trip = megabits(float64(r.Sent)), fmt.Sprintf("%.1f ms", r.RTT)
			if r.Known {
				estimate = megabits(float64(r.Estimate))
			}
		}
		var names []string
		for _, publication := range p.Publications {
			names = append(names, printable(publication.Name))
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s%s\n", printable(p.Identity), state, present,
			cmp.Or(strings.Join(names, ","), "-"), sent, estimate, trip, cmp.Or(printable(p.TokenID), "-"),
			column(clustered, printable(p.Node)))
	}
}

func megabits(rate float64) string { return fmt.Sprintf("%.1f Mbit/s", rate/1e6) }

// printable returns a text of a client for a terminal: characters that are not printable, such as those of escape
// sequences, are written as in Go.
func printable(text string) string {
	quoted := strconv.QuoteToGraphic(text)
	if quoted == `"`+text+`"` {
		return text
	}
	return quoted
}

func nodes() *cobra.Command {
	var client Client
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "nodes",
		Short: "List the nodes of the cluster of a running server",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, text, err := client.nodes(cmd.Context())
			if err != nil {
				return err
			}
			return show(cmd, asJSON, text, func(w io.Writer) { writeNodes(w, list, time.Now()) })
		},
	}
	client.Flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer of the server as JSON, with all of its fields")
	return cmd
}

// nodes returns the nodes of the cluster.
func (c *Client) nodes(ctx context.Context) (list []admin.NodeState, text []byte, err error) {
	var answer struct{ Nodes []admin.NodeState }
	text, err = c.get(ctx, "nodes", &answer)
	return answer.Nodes, text, err
}

func writeNodes(w io.Writer, nodes []admin.NodeState, now time.Time) {
	_, _ = fmt.Fprintln(w, "NODE\tREGION\tSTATE\tFOR\tLOAD\tROOMS\tPARTICIPANTS\tHEARTBEAT\tTRUNK\tADDRESS")
	for _, n := range nodes {
		state, beat, trunk := string(n.State), now.Sub(n.Beat).Round(100*time.Millisecond).String()+" ago", "-"
		if n.Draining {
			state += ", draining"
		}
		if n.Self {
			state, beat = state+", replies", "-"
		}
		if t := n.Trunk; t != nil {
			trunk = fmt.Sprintf("%.1f ms", t.RoundTrip)
			if t.Silent {
				trunk = "silent"
			}
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.0f %%\t%d\t%d\t%s\t%s\t%s\n", printable(n.Name),
			cmp.Or(printable(n.Region), "-"), state, now.Sub(n.Started).Round(time.Second), 100*n.Load, n.Rooms,
			n.Participants, beat, trunk, cmp.Or(printable(n.URL), "-"))
	}
}

func kick() *cobra.Command {
	var client Client
	var ban time.Duration
	cmd := &cobra.Command{
		Use:   "kick ROOM PARTICIPANT",
		Short: "Remove a participant from a room of a running server",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			query := url.Values{}
			if ban != 0 {
				query.Set("ban", ban.String())
			}
			path := "rooms/" + segment(arguments[0]) + "/participants/" + segment(arguments[1])
			_, err := client.request(cmd.Context(), http.MethodDelete, path, query)
			return err
		},
	}
	client.Flags(cmd.Flags())
	cmd.Flags().DurationVar(&ban, "ban", 0, "also keep the participant and its token out of the room for this time, "+
		"such as 24h; the ban ends when the server ends")
	return cmd
}

// drainInterval is the time between two questions of drain --wait.
const drainInterval = 500 * time.Millisecond

// errStillDraining is wrapped with the time.
var errStillDraining = errors.New("the server has not ended")

func drain() *cobra.Command {
	var client Client
	var patience time.Duration
	var node string
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "Make a running server refuse new participants, and end when all have left",
		Long: "Make a running server refuse new participants, tell those in its rooms, and end when all have left or " +
			"its drain time is over. A supervisor such as systemd starts the server again only if it failed.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path := "drain"
			if node != "" {
				path = "nodes/" + segment(node) + "/drain"
			}
			if _, err := client.request(cmd.Context(), http.MethodPost, path, nil); err != nil || patience == 0 {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), patience)
			defer cancel()
			return client.awaitEnd(ctx, node, patience)
		},
	}
	client.Flags(cmd.Flags())
	cmd.Flags().DurationVar(&patience, "wait", 0, "wait until the server has ended, at most this time; 0: do not wait")
	cmd.Flags().StringVar(&node, "node", "", "drain this node of the server's cluster in place of the server itself")
	return cmd
}

// awaitEnd waits until a node of the cluster, or the server itself if the name is empty, has ended.
func (c *Client) awaitEnd(ctx context.Context, node string, patience time.Duration) error {
	if node != "" {
		list, _, _ := c.nodes(ctx)
		if slices.ContainsFunc(list, func(n admin.NodeState) bool { return n.Self && n.Name == node }) {
			node = ""
		}
	}
	ticker := time.NewTicker(drainInterval)
	defer ticker.Stop()
	for {
		ended, err := c.ended(ctx, node)
		if ended || err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%w within %v", errStillDraining, patience)
		}
	}
}

// ended reports whether a node of the cluster, or the server itself if the name is empty, has ended. The server itself
// may answer anything while it ends.
func (c *Client) ended(ctx context.Context, node string) (bool, error) {
	if node == "" {
		var state admin.ServerState
		_, err := c.get(ctx, "server", &state)
		return errors.Is(err, ErrUnreachable) && ctx.Err() == nil, nil
	}
	list, _, err := c.nodes(ctx)
	return err == nil && !slices.ContainsFunc(list, func(n admin.NodeState) bool {
		return n.Name == node && n.State != admin.NodeDead
	}), err
}
