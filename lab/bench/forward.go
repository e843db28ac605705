// Package bench measures the loads that users choose (vollab forward), the machine's least time for each packet (vollab
// limit), and a standard set of loads as a table (vollab bench). Package hotpath does the measuring.
package bench

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/process"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/fanout"
	"github.com/volsfu/volsfu/lab/hotpath"
	"github.com/volsfu/volsfu/lab/hotpath/machinelimit"
)

// errComparison is returned for an unknown server in --compare.
var errComparison = errors.New("--compare: expected pion or on")

// ForwardCommand returns the command vollab forward.
func ForwardCommand() *cobra.Command {
	o := hotpath.Options{Load: hotpath.DefaultLoad()}
	var asJSON bool
	var compare string
	var seconds float64
	cmd := &cobra.Command{
		Use:   "forward",
		Short: "Measure the processor time of a server per forwarded packet, the residence time and the losses",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer cancel()
			o.Progress = lab.NewProgress(cmd.ErrOrStderr())
			o.Duration = time.Duration(seconds * float64(time.Second))
			var err error
			switch compare {
			case "":
			case "pion":
				if o.Compare, err = hotpath.FanoutCommand(); err != nil {
					return err
				}
			case "on":
				o.ComparePaced = true
			default:
				return fmt.Errorf("%w, got %q", errComparison, compare)
			}
			result, err := forward(ctx, o)
			if err != nil {
				return err
			}
			return lab.Print(cmd.OutOrStdout(), result, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.ServerBin, "server-bin", "", "the server's program; by default volsfu beside this program")
	flags.StringVar(&o.Config, "config", "", "the server's configuration file")
	flags.StringVar(&o.URL, "server", "",
		"ws://host:port of a running server on this host, without tokens; then no server is started")
	flags.StringVar(&o.Metrics, "metrics", "", "http://host:port/metrics of that server")
	flags.IntVar(&o.Load.Publishers, "publishers", o.Load.Publishers, "number of publishers")
	flags.IntVar(&o.Load.Receivers, "receivers", o.Load.Receivers, "number of receivers, each of which receives all "+
		"watched tracks")
	flags.IntVar(&o.Load.Tracks, "tracks", o.Load.Tracks, "number of tracks of each publisher")
	flags.IntVar(&o.Load.UnwatchedTracks, "unwatched-tracks", 0, "number of tracks of each publisher that no "+
		"receiver subscribes to")
	flags.Float64Var(&o.Load.Mbps, "mbps", o.Load.Mbps,
		"total Mbit/s of all watched tracks; an unwatched track adds the rate of a watched one")
	flags.Float64Var(&o.Load.FrameRate, "fps", o.Load.FrameRate, "frames per second")
	flags.Float64Var(&o.Load.Spread, "spread", o.Load.Spread,
		"fraction of the frame interval over which publishers send a frame; 0 means at once")
	flags.Float64Var(&o.Load.Loss, "loss", 0,
		"share of packets (0 to 1) that are lost between server and receivers in each direction")
	flags.DurationVar(&o.Load.RTT, "rtt", 0, "round-trip time between server and receivers")
	flags.Float64Var(&seconds, "seconds", 10, "time of measuring each server, in seconds")
	flags.StringVar((*string)(&o.Pacing), "pacing", "",
		"on: fail unless the server paces; off: start the server without pacing; smooth: receivers report arrivals, "+
			"and the server sends frames evenly, as to receivers with L4S; the default is the configuration")
	flags.BoolVar(&o.Sleep, "sleep", false,
		"let idle processors sleep, so that the time to wake them counts; by default they stay awake on Linux, "+
			"which requires root")
	flags.StringVar(&compare, "compare", "", "pion: measure a minimal fan-out server on Pion in turns with the "+
		"server; on: measure another volsfu with --pacing on, to which receivers report if they report to the first")
	flags.StringVar(&o.CompareBin, "compare-bin", "", "the program of the server of --compare on; by default the same")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object instead of a table")
	return cmd
}

// forward measures a load and, if the machine allows it, the machine's own limit.
func forward(ctx context.Context, o hotpath.Options) (*hotpath.Result, error) {
	limit, err := machinelimit.Measure(ctx)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, err
	}
	result, err := hotpath.Forward(ctx, o)
	if err != nil {
		return nil, err
	}
	result.Beside(limit)
	return result, nil
}

// LimitCommand returns the command vollab limit.
func LimitCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "limit",
		Short: "Measure the machine's own limit: the least time of one core to send and to receive a packet",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			limit, err := machinelimit.Measure(cmd.Context())
			if err != nil {
				return err
			}
			return lab.Print(cmd.OutOrStdout(), limit, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object instead of a table")
	return cmd
}

// FanoutCommand returns the command vollab fanout: the server with which forward compares volsfu. forward starts this
// program again to run it.
func FanoutCommand() *cobra.Command {
	batched := false
	cmd := &cobra.Command{
		Use:    "fanout",
		Short:  "Serve a minimal fan-out server on Pion, on ports that the system chooses",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer cancel()
			// The niceness is the default of volsfu, with which the server is compared.
			if err := process.RaisePriority(config.DefaultServer().Nice); err != nil {
				cmd.PrintErrln(err)
			}
			sockets := fanout.Single
			if batched {
				sockets = fanout.Batched
			}
			return fanout.Serve(ctx, sockets, cmd.ErrOrStderr())
		},
	}
	cmd.Flags().BoolVar(&batched, strings.TrimPrefix(hotpath.BatchedFlag, "--"), false,
		"use Pion's batched sockets")
	return cmd
}
