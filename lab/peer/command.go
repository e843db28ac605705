package peer

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/volsfu/volsfu/lab/baseline"
	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// rate is a flag for a bitrate.
type rate struct{ of *volumetric.Bitrate }

// Set implements pflag.Value.
func (r rate) Set(text string) (err error) {
	*r.of, err = volumetric.ParseBitrate(text)
	return err
}

// String implements pflag.Value.
func (r rate) String() string {
	if r.of == nil {
		return ""
	}
	return fmt.Sprintf("%gMbit", float64(*r.of)/1e6)
}

// Type implements pflag.Value.
func (rate) Type() string { return "rate" }

// flags are the flags of vollab peer: the peer's configuration, and those of the command itself.
type flags struct {
	Config
	seconds, idle float64
	summary       string
}

// Command returns the command vollab peer.
func Command() *cobra.Command {
	p := &flags{Config: DefaultConfig()}
	cmd := &cobra.Command{
		Use:   "peer",
		Short: "Run one end of a transport: its server, or a client that publishes, watches, or both",
		Long: "Run one end of a transport as a separate process, so that its processor time can be measured and " +
			"the process can run in a network namespace.\n" +
			"The peer reports its address and the arrival of the first frame as lines of JSON on standard error. At " +
			"the end of its time, or on SIGINT and SIGTERM, the peer prints its results.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer cancel()
			return p.run(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	p.endFlags(f)
	p.sourceFlags(f)
	p.watchFlags(f)
	f.Float64Var(&p.seconds, "seconds", 0,
		"seconds after the connection to the other end at which the peer ends; 0 means at an interruption")
	f.StringVar(&p.Records, "records", "",
		"new file for the times of the stages of every frame, as JSON lines")
	f.StringVar(&p.summary, "summary", "", "file for the results, as one JSON object; empty means standard output")
	return cmd
}

// endFlags select the end and the transport.
func (p *flags) endFlags(f *pflag.FlagSet) {
	f.StringVar((*string)(&p.End.Transport), "transport", "", "transport of frames: "+baseline.Names())
	f.StringVar((*string)(&p.End.Role), "role", string(p.End.Role),
		"server, publish, watch, or both: publish and watch at the same time")
	f.StringVar(&p.End.Name, "name", p.End.Name, "this peer's name")
	f.StringVar(&p.End.Watched, "watched", p.End.Watched, "name of the watched peer")
	f.StringVar(&p.End.Listen, "listen", "",
		"HOST:PORT on which a server listens; without a server, the publisher listens (udp-chunks: the watcher)")
	f.StringVar(&p.End.Connect, "connect", "",
		"HOST:PORT of the server or, without a server, of the other peer; the peer waits until it can connect")
	f.StringVar(&p.End.Congestion, "congestion", "", "TCP's congestion control, for instance cubic; empty means the "+
		"system's default")
	f.DurationVar(&p.End.Gap, "gap", p.End.Gap, "udp-chunks: time between two packets, 0 for none")
	f.DurationVar(&p.End.Segment, "segment", 0, "dash: length of segments; 0 is one frame")
	f.Var(rate{&p.End.Min}, "min-bitrate", "pion: smallest estimate, which is also the initial one")
	f.Var(rate{&p.End.Max}, "max-bitrate", "pion: largest estimate")
	f.BoolVar(&p.End.Adapt, "adapt", false,
		"estimates select qualities: with pion at the publisher, for all tiles; with volsfu in the server, for this "+
			"watcher; otherwise --quality and --decisions select them")
	f.StringVar((*string)(&p.End.Suppression), "suppression", string(p.End.Suppression),
		"volsfu's server: policy for requests to publishers: warm, neighbours or strict")
	f.StringVar((*string)(&p.End.Pacing), "pacing", string(p.End.Pacing),
		"volsfu's server: pacing of frames to receivers: spread:PART of the frame interval, spread:DURATION, "+
			"burst5ms or off")
	f.Float64Var(&p.End.Spread, "spread", 0,
		"volsfu's publisher: part of the frame interval over which a frame is sent; 0 is the SDK's default")
	f.Var(rate{&p.End.Uplink}, "uplink",
		"volsfu's publisher: assumed rate of the path to the server until the first report; 0 is the SDK's default")
	f.StringVar(&p.End.Controller, "controller", p.End.Controller,
		"volsfu's publisher and server: congestion control: auto (L4S if reports have ECN), gcc or paper000")
	f.StringVar(&p.End.Secret, "secret", p.End.Secret,
		"volsfu: key of the tokens with which peers join, 32 bytes or more, the same for all peers")
	f.IntVar(&p.End.QueueFrames, "receiver-queue", p.End.QueueFrames,
		"servers of reflector and websocket: number of frames queued for each receiver; further frames are dropped")
}

// sourceFlags select the published content.
func (p *flags) sourceFlags(f *pflag.FlagSet) {
	f.StringVar(&p.Frames, "frames", "",
		"file of frames to publish, from vollab prepare or volpeer record --content encoded; empty means live "+
			"encoding of --source")
	materialFlags(f, &p.Material)
	f.Float64Var(&p.Publish.FPS, "fps", p.Publish.FPS, "captures per second")
	f.IntVar(&p.Publish.EncoderQueue, "encoder-queue", p.Publish.EncoderQueue,
		"number of captures that wait for the encoder; beyond that, the oldest is dropped")
	f.IntVar(&p.Publish.SendQueue, "send-queue", p.Publish.SendQueue,
		"number of frames of each tile and quality that wait for the transport; beyond that, the oldest is dropped")
	f.IntVar(&p.Workers, "workers", 0, "number of tiles encoded or decoded at the same time; 0 means one per "+
		"processor")
}

// materialFlags select the captured content and its encoding.
func materialFlags(f *pflag.FlagSet, m *carriage.Material) {
	f.StringVar(&m.Source, "source", m.Source,
		"source of the clouds, as for volpeer publish: synthetic, ply:DIR, glb:FILE, rgbd:DIR, replay:FILE, …")
	f.IntVar(&m.Points, "points", m.Points, "largest number of points per cloud, sampled evenly; 0 means no limit")
	f.IntVar(&m.Seed, "seed", 0, "seed of the source")
	f.StringVar(&m.Tiling, "tiling", m.Tiling,
		"partition of clouds into tiles, as for volpeer publish: direction, cameras, octants, kmeans")
	f.IntVar(&m.Tiles, "tiles", m.Tiles, "number of tiles; 1, 2, 4, 9 or 15 by direction")
	f.StringVar(&m.Qualities, "qualities", m.Qualities,
		"qualities as for volpeer publish: NAME=SIZE[:BITS[:SPEED]],… with SIZE as points (40000) or a share (25%)")
	f.StringVar(&m.Codec, "codec", m.Codec,
		"draco, draco+jpeg, zstd, raw or cwi0; parts:CODEC:K encodes K parts on K threads")
	f.BoolVar(&m.NoColors, "no-colors", false, "encode without colours")
}

// watchFlags configure the handling of received frames.
func (p *flags) watchFlags(f *pflag.FlagSet) {
	f.IntVar(&p.End.Tiles, "watched-tiles", p.End.Tiles, "number of watched tiles")
	f.IntVar((*int)(&p.End.Quality), "quality", int(p.End.Quality),
		"index of the initial quality of all watched tiles")
	f.BoolVar(&p.Watch.Decode, "decode", p.Watch.Decode,
		"decode frames; --decode=false counts complete frames as shown")
	f.Float64Var(&p.Watch.Display, "display", 0,
		"pictures per second of the display; decoded frames wait for the next picture; 0 means no wait")
	f.IntVar(&p.Watch.DecoderQueue, "decoder-queue", p.Watch.DecoderQueue,
		"number of frames of each tile that wait for the decoder; beyond that, the oldest is skipped")
	f.StringVar(&p.Decisions, "decisions", "",
		"file with decisions on quality, CSV t_s,q0,q1,… with the time since the first frame and a quality for each "+
			"tile")
	f.Float64Var(&p.idle, "idle", 0,
		"seconds without a frame, after the first one, at which the peer ends; 0 means no limit")
}

// run runs the peer and writes its summary.
func (p *flags) run(ctx context.Context, out, console io.Writer) error {
	p.Duration = time.Duration(p.seconds * float64(time.Second))
	p.Watch.Idle = time.Duration(p.idle * float64(time.Second))
	p.Listening = func(address string) { _ = json.NewEncoder(console).Encode(map[string]string{"ready": address}) }
	p.Watch.Begun = func() { _ = json.NewEncoder(console).Encode(map[string]string{"receiving": p.End.Name}) }
	summary, err := Run(ctx, p.Config)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(summary, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if p.summary != "" {
		return os.WriteFile(p.summary, text, 0o666)
	}
	_, err = out.Write(text)
	return err
}
