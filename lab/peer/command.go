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
		Long: "Run one end of a transport as a process of its own, so that its processor time can be measured and " +
			"it can run in a network namespace.\n" +
			"It writes its address and the arrival of the first frame in lines of JSON to standard error. It prints " +
			"its results at the end of its time, or on SIGINT and SIGTERM.",
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
		"end after so many seconds, counted from the connection to the other end; 0 goes on until interrupted")
	f.StringVar(&p.Records, "records", "",
		"file for a record of every frame with the times of its stages, as JSON lines; it must not exist yet")
	f.StringVar(&p.summary, "summary", "", "file for what was measured, as one JSON object; without, standard output")
	return cmd
}

// endFlags select the end and the transport.
func (p *flags) endFlags(f *pflag.FlagSet) {
	f.StringVar((*string)(&p.End.Transport), "transport", "", "how frames travel: "+baseline.Names())
	f.StringVar((*string)(&p.End.Role), "role", string(p.End.Role),
		"server, publish, watch, or both: publish and watch at the same time")
	f.StringVar(&p.End.Name, "name", p.End.Name, "this peer's name")
	f.StringVar(&p.End.Watched, "watched", p.End.Watched, "name of the peer that is watched")
	f.StringVar(&p.End.Listen, "listen", "",
		"HOST:PORT to listen on, for servers, and without a server for the publisher (udp-chunks: the watcher)")
	f.StringVar(&p.End.Connect, "connect", "",
		"HOST:PORT of the server, or without a server of the other peer; the peer waits for it")
	f.StringVar(&p.End.Congestion, "congestion", "", "TCP's congestion control, such as cubic; without, the system's")
	f.DurationVar(&p.End.Gap, "gap", p.End.Gap, "udp-chunks: time between two packets, 0 for none")
	f.DurationVar(&p.End.Segment, "segment", 0, "dash: length of segments; 0 is one frame")
	f.Var(rate{&p.End.Min}, "min-bitrate", "pion: what is estimated at least, and at first")
	f.Var(rate{&p.End.Max}, "max-bitrate", "pion: what is estimated at most")
	f.BoolVar(&p.End.Adapt, "adapt", false,
		"estimates select qualities: with pion at the publisher, for all tiles; with volsfu in the server, for this "+
			"watcher; otherwise --quality and --decisions select them")
	f.StringVar((*string)(&p.End.Suppression), "suppression", string(p.End.Suppression),
		"volsfu's server: requests to publishers, warm, neighbours or strict")
	f.StringVar((*string)(&p.End.Pacing), "pacing", string(p.End.Pacing),
		"volsfu's server: how frames are spread to receivers, spread:PART of the frame interval, spread:DURATION, "+
			"burst5ms or off")
	f.Float64Var(&p.End.Spread, "spread", 0,
		"volsfu's publisher: part of the frame interval over which a frame is sent; 0 is the SDK's default")
	f.Var(rate{&p.End.Uplink}, "uplink",
		"volsfu's publisher: assumed rate of the path to the server until the first report; 0 is the SDK's default")
	f.StringVar(&p.End.Secret, "secret", p.End.Secret,
		"volsfu: key of the tokens with which peers join, 32 bytes or more, the same for all peers")
	f.IntVar(&p.End.QueueFrames, "receiver-queue", p.End.QueueFrames,
		"servers of reflector and websocket: frames that wait for each receiver; more are dropped")
}

// sourceFlags select the published content.
func (p *flags) sourceFlags(f *pflag.FlagSet) {
	f.StringVar(&p.Frames, "frames", "",
		"publish frames of a file that vollab prepare, or volpeer record --content encoded, has made; empty encodes "+
			"live as the flags below say")
	materialFlags(f, &p.Material)
	f.Float64Var(&p.Publish.FPS, "fps", p.Publish.FPS, "captures per second")
	f.IntVar(&p.Publish.EncoderQueue, "encoder-queue", p.Publish.EncoderQueue,
		"captures that wait for the encoder; of one more the oldest is dropped")
	f.IntVar(&p.Publish.SendQueue, "send-queue", p.Publish.SendQueue,
		"frames of each tile and quality that wait for the transport; of one more the oldest is dropped")
	f.IntVar(&p.Workers, "workers", 0, "tiles encoded, and tiles decoded, at the same time; 0 is one per processor")
}

// materialFlags select the captured content and its encoding.
func materialFlags(f *pflag.FlagSet, m *carriage.Material) {
	f.StringVar(&m.Source, "source", m.Source,
		"where clouds come from, as for volpeer publish: synthetic, ply:DIR, glb:FILE, rgbd:DIR, replay:FILE, …")
	f.IntVar(&m.Points, "points", m.Points, "points of each cloud at most, sampled evenly; 0 takes all")
	f.IntVar(&m.Seed, "seed", 0, "what is random about the source")
	f.StringVar(&m.Tiling, "tiling", m.Tiling,
		"how clouds are cut into tiles, as for volpeer publish: direction, cameras, octants, kmeans")
	f.IntVar(&m.Tiles, "tiles", m.Tiles, "number of tiles; 1, 2, 4, 9 or 15 by direction")
	f.StringVar(&m.Qualities, "qualities", m.Qualities,
		"qualities as for volpeer publish: NAME=SIZE[:BITS[:SPEED]],… with SIZE as points (40000) or a share (25%)")
	f.StringVar(&m.Codec, "codec", m.Codec,
		"draco, draco+jpeg, zstd, raw or cwi0; parts:CODEC:K codes in K parts on as many threads")
	f.BoolVar(&m.NoColors, "no-colors", false, "leave colours out")
}

// watchFlags configure the handling of received frames.
func (p *flags) watchFlags(f *pflag.FlagSet) {
	f.IntVar(&p.End.Tiles, "watched-tiles", p.End.Tiles, "number of tiles of what is watched")
	f.IntVar((*int)(&p.End.Quality), "quality", int(p.End.Quality),
		"index of the quality that all tiles are watched at first")
	f.BoolVar(&p.Watch.Decode, "decode", p.Watch.Decode,
		"decode frames; --decode=false counts complete frames as shown")
	f.Float64Var(&p.Watch.Display, "display", 0,
		"pictures per second of the display that decoded frames wait for; 0 shows them at once")
	f.IntVar(&p.Watch.DecoderQueue, "decoder-queue", p.Watch.DecoderQueue,
		"frames of each tile that wait for the decoder; of one more the oldest is skipped")
	f.StringVar(&p.Decisions, "decisions", "",
		"file with decisions on quality, CSV t_s,q0,q1,… with the time since the first frame and a quality for each "+
			"tile")
	f.Float64Var(&p.idle, "idle", 0, "end when nothing has come for so many seconds, once something came; 0 never does")
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
