package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// Command returns the command vollab probe.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "probe",
		Short: "Measure the path of single packets below programs with timestamps of kernels and network cards",
		Long: "Measure the path of single packets below programs: vollab probe receive on one host, vollab probe " +
			"send on another. Each prints a JSON object for every packet. Times are " +
			"nanoseconds since 1970 by each host's clock, 0 without a timestamp: network cards without clocks of " +
			"their own have no hardware timestamps.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSend(), newReceive())
	return cmd
}

func newSend() *cobra.Command {
	var to string
	plan := Plan{}
	cmd := &cobra.Command{
		Use:   "send",
		Short: "Send packets",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if plan.To, err = netip.ParseAddrPort(to); err != nil {
				return fmt.Errorf("--to: expected a numeric HOST:PORT: %w", err)
			}
			ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer cancel()
			departures, err := Send(ctx, plan)
			return writeLines(cmd.OutOrStdout(), departures, err)
		},
	}
	f := cmd.Flags()
	f.StringVar(&to, "to", "", "HOST:PORT of the receiver, an IPv4 address")
	f.IntVar(&plan.Size, "size", 128, "bytes of each IP packet")
	f.IntVar(&plan.Count, "count", 300, "packets")
	f.DurationVar(&plan.Interval, "interval", 10*time.Millisecond, "time between two packets")
	return cmd
}

func newReceive() *cobra.Command {
	var at string
	var count int
	var idle time.Duration
	cmd := &cobra.Command{
		Use:   "receive",
		Short: "Receive packets",
		Long:  "Receive packets. The command reports its address in a line of JSON on standard error.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			address, err := netip.ParseAddrPort(at)
			if err != nil {
				return fmt.Errorf("--listen: expected a numeric HOST:PORT: %w", err)
			}
			ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer cancel()
			return receiveAll(ctx, address, count, idle, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&at, "listen", "127.0.0.1:0", "HOST:PORT on which to receive, an IPv4 address")
	f.IntVar(&count, "count", 300, "number of packets after which to end")
	f.DurationVar(&idle, "idle", 2*time.Second, "time without a packet, after the first one, at which to end")
	return cmd
}

func receiveAll(ctx context.Context, at netip.AddrPort, count int, idle time.Duration, out, console io.Writer) error {
	arrivals, err := Receive(ctx, at, count, idle, func(at netip.AddrPort) {
		_ = json.NewEncoder(console).Encode(map[string]string{"ready": at.String()})
	})
	return writeLines(out, arrivals, err)
}

// writeLines writes an object for each item, and then returns err.
func writeLines[T any](out io.Writer, list []T, err error) error {
	encoder := json.NewEncoder(out)
	for i := range list {
		if failed := encoder.Encode(&list[i]); failed != nil {
			return failed
		}
	}
	return err
}
