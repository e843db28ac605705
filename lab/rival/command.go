package rival

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/lab"
)

var errFlags = errors.New("invalid flags")

// Command returns the command vollab rival.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rival",
		Short: "Compete with media for a bottleneck",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPrague())
	return cmd
}

func newPrague() *cobra.Command {
	var to, listen string
	var seconds float64
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "prague",
		Short: "An endless transfer with Prague, the scalable congestion control of L4S, over UDP",
		Long: `An endless transfer with Prague, the scalable congestion control of L4S, over UDP.

vollab rival prague --listen HOST:PORT acknowledges the segments of any number of senders. The command reports its
address in a line of JSON on standard error.
vollab rival prague --to HOST:PORT sends segments of 1,500 bytes as ECT(1), in bursts of at most 250 µs.
Each prints a summary at the end of its time, or on SIGINT and SIGTERM.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (to == "") == (listen == "") {
				return fmt.Errorf("%w: expected either --to or --listen", errFlags)
			}
			if seconds < 0 {
				return fmt.Errorf("%w: --seconds is %g, expected 0 or more", errFlags, seconds)
			}
			ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer cancel()
			if seconds > 0 {
				ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds*float64(time.Second)))
				defer cancel()
			}
			if listen != "" {
				return serve(ctx, cmd, listen, asJSON)
			}
			return send(ctx, cmd, to, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringVar(&to, "to", "", "HOST:PORT of the receiver, a numeric address")
	f.StringVar(&listen, "listen", "", "HOST:PORT on which to receive; port 0 lets the system choose")
	f.Float64Var(&seconds, "seconds", 0, "seconds after which to end; 0 means at an interruption")
	f.BoolVar(&asJSON, "json", false, "print one JSON object instead of text; for a sender with figures every 0.1 s")
	return cmd
}

// serve acknowledges segments until the context ends.
func serve(ctx context.Context, cmd *cobra.Command, listen string, asJSON bool) error {
	address, err := netip.ParseAddrPort(listen)
	if err != nil {
		return fmt.Errorf("%w: --listen: expected a numeric HOST:PORT: %w", errFlags, err)
	}
	sink, err := Listen(address)
	if err != nil {
		return err
	}
	_ = json.NewEncoder(cmd.ErrOrStderr()).Encode(map[string]string{"ready": sink.Address().String()})
	select {
	case <-ctx.Done():
	case <-sink.Failed():
	}
	if err := sink.Close(); err != nil {
		return err
	}
	return lab.Print(cmd.OutOrStdout(), sink.Summary(), asJSON)
}

// send sends segments until the context ends. With an error after the beginning, the summary is printed, too.
func send(ctx context.Context, cmd *cobra.Command, to string, asJSON bool) error {
	address, err := netip.ParseAddrPort(to)
	if err != nil {
		return fmt.Errorf("%w: --to: expected a numeric HOST:PORT: %w", errFlags, err)
	}
	sender, err := Open(address)
	if err != nil {
		return err
	}
	summary, err := sender.Run(ctx)
	return errors.Join(lab.Print(cmd.OutOrStdout(), summary, asJSON), err)
}
