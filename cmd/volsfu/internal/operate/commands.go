package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/internal/admin"
	"github.com/volsfu/volsfu/internal/sfu"
)

// Commands returns the commands.
func Commands() []*cobra.Command { return []*cobra.Command{rooms(), kick(), drain()} }

func rooms() *cobra.Command {
	var client Client
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rooms [ROOM]",
		Short: "List the rooms of a running server, or the participants of a room",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			var text []byte
			var err error
			var table func(io.Writer)
			if len(arguments) == 0 {
				var answer struct{ Rooms []sfu.RoomState }
				text, err = client.get(cmd.Context(), "rooms", &answer)
				table = func(w io.Writer) { writeRooms(w, answer.Rooms) }
			} else {
				var room sfu.RoomState
				text, err = client.get(cmd.Context(), "rooms/"+url.PathEscape(arguments[0]), &room)
				table = func(w io.Writer) { writeParticipants(w, room.Participants, time.Now()) }
			}
			if err != nil {
				return err
			}
			if asJSON {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", text)
				return err
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			table(w)
			return w.Flush()
		},
	}
	client.Flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer of the server as JSON, with all of its fields")
	return cmd
}

func writeRooms(w io.Writer, rooms []sfu.RoomState) {
	_, _ = fmt.Fprintln(w, "ROOM\tPARTICIPANTS\tPUBLICATIONS\tSENT")
	for _, room := range rooms {
		publications, sent := 0, 0.0
		for _, p := range room.Participants {
			publications += len(p.Publications)
			if p.Reception != nil {
				sent += float64(p.Reception.Sent)
			}
		}
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", printable(room.Name), len(room.Participants), publications,
			megabits(sent))
	}
}

func writeParticipants(w io.Writer, participants []sfu.ParticipantState, now time.Time) {
	_, _ = fmt.Fprintln(w, "PARTICIPANT\tSTATE\tFOR\tPUBLICATIONS\tSENT\tESTIMATE\tRTT\tTOKEN ID")
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
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", printable(p.Identity), state, present,
			cmp.Or(strings.Join(names, ","), "-"), sent, estimate, trip, cmp.Or(printable(p.TokenID), "-"))
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
			path := "rooms/" + url.PathEscape(arguments[0]) + "/participants/" + url.PathEscape(arguments[1])
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
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "Make a running server refuse new participants, and end when all have left",
		Long: "Make a running server refuse new participants, tell those in its rooms, and end when all have left or " +
			"its drain time is over. A supervisor such as systemd starts the server again only if it failed.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := client.request(cmd.Context(), http.MethodPost, "drain", nil); err != nil || patience == 0 {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), patience)
			defer cancel()
			ticker := time.NewTicker(drainInterval)
			defer ticker.Stop()
			for {
				var state admin.ServerState
				if _, err := client.get(ctx, "server", &state); errors.Is(err, ErrUnreachable) && ctx.Err() == nil {
					return nil
				}
				select {
				case <-ticker.C:
				case <-ctx.Done():
					return fmt.Errorf("%w within %v", errStillDraining, patience)
				}
			}
		},
	}
	client.Flags(cmd.Flags())
	cmd.Flags().DurationVar(&patience, "wait", 0, "wait until the server has ended, at most this time; 0: do not wait")
	return cmd
}
