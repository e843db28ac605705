package control

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/rival"
)

// help describes the cases.
const help = `Run estimator, allocator, pacer and repair over an emulated link in virtual time.

CASE is one of
  steady:MBPS    a link of a constant rate
  ramp           from 12.5 to 90 Mbit/s on an idle link of 100 Mbit/s
  drop           100 Mbit/s, falling to 25 at 15 s and back to 100 at 25 s
  uplink:MBPS    a publisher behind an uplink of a constant rate
  cliff          100 Mbit/s, falling to 20 within 50 ms at 15 s
  trace:FILE     a link whose rate follows a CSV file with the columns t_s (seconds) and mbps (Mbit/s)
  cubic:N        beside N flows of TCP Cubic on 200 Mbit/s, joined after some seconds
  prague:N       beside N flows of Prague, the scalable sender of L4S, joined after 5 s, on 100 Mbit/s (with
                 --queue paper000 on 200 Mbit/s, joined by the flows after 5 s)
  fair:N         N receivers on 50 Mbit/s
  room:N         N participants with an uplink and a downlink of 100 Mbit/s each; a Prague flow joins the first
                 participant's uplink at half of the run, 15 s
  loss:PERCENT   random losses on 100 Mbit/s, in both directions
  bleach:KIND    100 Mbit/s; from 10 s on the link sets the ECN field to Not-ECT (clear), rewrites ECT(1) to ECT(0)
                 (ect0), marks every ECN-capable packet (mark), or drops every ECN-capable packet (drop)
  rfc8867:S      a test case of RFC 8867, with S the section, 5.1 to 5.8; not with --live`

// flags holds the flags of the command.
type flags struct {
	options        Options
	seconds, mbps  float64
	plot           string
	live, asJSON   bool
	scream, prague string // folders of the programs of others
}

// Command returns the command vollab control.
func Command() *cobra.Command {
	f := &flags{options: DefaultOptions()}
	cmd := &cobra.Command{
		Use:   "control CASE",
		Short: "Run estimator, allocator, pacer and repair over an emulated link in virtual time",
		Long:  help,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer cancel()
			result, err := f.run(ctx, arguments[0])
			if err != nil {
				return err
			}
			return lab.Print(cmd.OutOrStdout(), result, f.asJSON)
		},
	}
	f.register(cmd.Flags())
	return cmd
}

// run runs a case.
func (f *flags) run(ctx context.Context, text string) (*Result, error) {
	o := f.options
	o.Duration = time.Duration(f.seconds * float64(time.Second))
	o.LinkBPS = int64(f.mbps * 1e6)
	if f.scream != "" || f.prague != "" {
		return f.runProgram(ctx, text, o)
	}
	run := RunVirtual
	if f.live {
		run = RunLive
	}
	record, err := run(ctx, text, o)
	if err != nil {
		return nil, err
	}
	if f.plot != "" {
		if err := writePlot(record, f.plot); err != nil {
			return nil, err
		}
	}
	return record.Result(), nil
}

// runProgram runs a case with a sender of others, from the folder of SCReAM or of udp_prague.
func (f *flags) runProgram(ctx context.Context, text string, o Options) (*Result, error) {
	if !f.live || f.plot != "" || f.scream != "" && f.prague != "" {
		return nil, fmt.Errorf("%w: --scream and --udp-prague, expected one of them, with --live and without --plot",
			ErrCase)
	}
	find, folder := rival.Scream, f.scream
	if f.prague != "" {
		find, folder = rival.UDPPrague, f.prague
	}
	e, err := find(folder)
	if err != nil {
		return nil, err
	}
	return RunExternal(ctx, text, o, e)
}

// register adds the flags to a set.
func (f *flags) register(set *pflag.FlagSet) {
	o := &f.options
	set.DurationVar(&o.RTT, "rtt", 0, "round-trip time of the empty path; 0 selects the case's default, 20 ms")
	set.DurationVar(&o.RivalRTT, "rival-rtt", 0,
		"round-trip time of the empty path of competitors; 0 selects that of the receivers")
	set.StringVar(&o.Joins, "joins", "",
		"who joins after some seconds, the receiver or the rivals; empty is the rivals with --queue paper000, else "+
			"the receiver")
	set.BoolVar(&o.CubicECN, "cubic-ecn", false, "competing Cubic flows use classic ECN: marks instead of losses")
	set.Float64Var(&f.seconds, "seconds", 0, "duration of the case in seconds; 0 selects the case's default")
	set.Uint64Var(&o.Seed, "seed", o.Seed, "seed of frame sizes and losses; the same seed reproduces the run")
	set.StringVar(&o.Queue, "queue", "",
		"queue of the bottleneck: fifo:MS, codel, fq, dualpi2 or paper000; by default fifo:50, beside Cubic fq, "+
			"in prague, uplink, room, cliff and bleach dualpi2. MS is at the mean rate")
	set.StringVar((*string)(&o.Pacing), "pacing", string(o.Pacing),
		"pacing mode: spread:PART, spread:DURATION, burst5ms or off")
	set.StringVar(&o.Estimator.Profile, "profile", "",
		"limits of the estimate: default or paper000; empty selects the case's default")
	set.StringVar(&o.Estimator.Controller, "controller", o.Estimator.Controller,
		"congestion controller: auto (L4S with ccfb reports), gcc or paper000")
	set.StringVar((*string)(&o.Feedback), "feedback", string(o.Feedback),
		"format of the receivers' arrival reports: transport (transport-wide feedback) or ccfb (RFC 8888); by default "+
			"transport with gcc, ccfb with other controllers")
	set.BoolVar(&o.Audio, "audio", false, "also send audio to the receivers; not with --live")
	set.BoolVar(&o.NoRTX, "no-rtx", false,
		"receivers accept neither retransmissions nor probe padding, which is sent as retransmissions; not with --live")
	set.Float64Var(&f.mbps, "mbps", 0, "link rate for cases without a rate of their own; 0 selects the case's default")
	set.StringVar(&f.plot, "plot", "", "write a diagram of rates, queue and losses over time to this SVG file")
	set.BoolVar(&f.live, "live", false,
		"run a server and its clients end to end over an emulated network in real time, instead; as root in prague, "+
			"uplink, room, cliff and bleach, and with codel, dualpi2, paper000, --joins rivals, --rival-rtt and "+
			"--cubic-ecn")
	set.StringVar(&f.scream, "scream", "",
		"with --live: run SCReAM in place of the server and its clients; the folder has "+
			"scream_bw_test_tx and scream_bw_test_rx")
	set.StringVar(&f.prague, "udp-prague", "",
		"with --live: run udp_prague with frames in place of the server and its clients; the folder "+
			"has udp_prague_sender and udp_prague_receiver")
	set.BoolVar(&f.asJSON, "json", false, "print one JSON object instead of a table")
}

func writePlot(record *Record, name string) (err error) {
	file, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("write the diagram: %w", err)
	}
	defer func() {
		if closed := file.Close(); err == nil {
			err = closed
		}
	}()
	return record.Plot(file)
}
