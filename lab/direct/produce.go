package direct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/peer/cameras"
	"github.com/volsfu/volsfu/internal/peer/codecs"
	"github.com/volsfu/volsfu/internal/peer/lod"
	"github.com/volsfu/volsfu/lab/direct/individual"
	"github.com/volsfu/volsfu/lab/direct/producer"
	"github.com/volsfu/volsfu/lab/direct/rendezvous"
	"github.com/volsfu/volsfu/lab/direct/stream"
	"github.com/volsfu/volsfu/lab/wallclock"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// producing has the flags of vollab direct produce.
type producing struct {
	direct
	source     string
	cameras    cameras.Flags
	background []string
	capture    capture.Options
	transport  string
	mode       string
	codec      string
	bits       int
	speed      int
	colorless  bool
	rate       peer.Bitrate
	least      peer.Bitrate
	most       peer.Bitrate
	pacing     string
	feedback   string
	controller string
	regionBy   string
	gap        time.Duration
	count      int
	seeing     lod.Flags
}

func newProduce() *cobra.Command {
	p := &producing{capture: capture.DefaultOptions()}
	cmd := &cobra.Command{
		Use:   "produce",
		Short: "Capture, encode and send to one consumer",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), peer.NewLog(cmd.ErrOrStderr()))
		},
	}
	f := cmd.Flags()
	p.flags(f)
	f.StringVar(&p.source, "source", "synthetic", "source of the point clouds: "+strings.Join(capture.Kinds(), ", "))
	f.StringArrayVar(&p.background, "background", nil,
		"background to remove from depth images; may be repeated: "+depth.BackgroundGrammar)
	f.StringVar(&p.capture.Calibration, "calibration", "",
		"file in YAML or JSON with the poses of several cameras; by default all are at the origin")
	p.cameras.Add(f)
	f.Float64Var(&p.capture.FPS, "fps", 0, "frames per second; 0 means the rate of the source, or 30 if the source "+
		"has none")
	f.IntVar(&p.capture.Points, "points", 125000, "largest number of points per frame; 0 means no limit")
	f.IntVar(&p.capture.Seed, "seed", 0, "seed of the synthetic figure and of the order of points")
	f.StringVar(&p.transport, "transport", rendezvous.TransportWebRTC,
		"webrtc: a peer connection, encrypted; udp: plain datagrams")
	f.StringVar(&p.mode, "mode", rendezvous.ModeAdaptive,
		"adaptive: the points of each frame follow the bandwidth and the view, with pacing and retransmission; "+
			"paper002: like the tool of paper 002, over udp")
	f.StringVar(&p.codec, "codec", "", codecs.Grammar+"; the default is draco, or zstd in a program without "+
		"Draco")
	f.IntVar(&p.bits, "bits", 11, "bits per coordinate, 1 to 30")
	f.IntVar(&p.speed, "speed", 7, "speed of the codec, 0 (smallest) to 10 (fastest)")
	f.BoolVar(&p.colorless, "no-colors", false, "encode without colours")
	f.Var(&p.rate, "bitrate", "mode adaptive: fixed rate, such as 40Mbit, without a bandwidth estimate")
	f.Var(&p.least, "min-bitrate", "mode adaptive: smallest and first estimate; the default is 12.5Mbit")
	f.Var(&p.most, "max-bitrate", "mode adaptive: largest estimate; the default is 90Mbit")
	f.StringVar(&p.pacing, "pacing", string(pacing.Default),
		"mode adaptive: pacing of frames: spread:PART of the frame interval, spread:TIME, burst5ms or off")
	f.StringVar(&p.feedback, "feedback", feedbackCCFB,
		"mode adaptive: reports of arrivals: ccfb, by stream with ECN (RFC 8888); transport, by transport-wide number")
	f.StringVar(&p.controller, "controller", congestion.ControllerAuto,
		"mode adaptive: congestion control: auto (L4S with ccfb reports), gcc or paper000")
	p.seeing.Add(f, lod.List(pointcloud.DefaultFieldOfView().Maxima))
	f.StringVar(&p.regionBy, "region-by", regionByObject,
		"mode adaptive: unit that is assigned to a region of the view: object, by its centre, or point, by its "+
			"position")
	f.IntVar(&p.count, "count", 0, "number of frames to send; 0 means no limit")
	f.DurationVar(&p.gap, "gap", time.Microsecond, "mode paper002: time between two packets; 0 means none")
	return cmd
}

// The values of --feedback.
const (
	feedbackTransport = "transport"
	feedbackCCFB      = "ccfb"
)

// The values of --region-by.
const (
	regionByObject = "object"
	regionByPoint  = "point"
)

// Errors of the flags.
var (
	errTransport = errors.New("--transport: expected webrtc or udp")
	errMode      = errors.New("--mode: expected adaptive or paper002")
	errChunks    = errors.New("--mode paper002: expected --transport udp, and no bitrates")
	errGap       = errors.New("--gap: expected 0 to 100ms")
	errCount     = errors.New("--count: expected 0 or more")
	errFeedback  = errors.New("--feedback: expected ccfb or transport")
	errRegionBy  = errors.New("--region-by: expected object or point")
)

// settings has the checked flags, without the source.
type settings struct {
	codec   codec.Codec
	params  codec.Params
	field   pointcloud.FieldOfView
	sampler *lod.Sampler
	sender  stream.SenderConfig
	limits  congestion.Limits
}

// check parses and checks the flags.
func (p *producing) check(log *slog.Logger) (d settings, err error) {
	if err := p.direct.check(); err != nil {
		return d, err
	}
	paper := p.mode == rendezvous.ModePaper002
	switch {
	case p.transport != rendezvous.TransportWebRTC && p.transport != rendezvous.TransportUDP:
		return d, fmt.Errorf("%w, got %.32q", errTransport, p.transport)
	case p.mode != rendezvous.ModeAdaptive && !paper:
		return d, fmt.Errorf("%w, got %.32q", errMode, p.mode)
	case paper && (p.transport != rendezvous.TransportUDP || p.rate != 0 || p.least != 0 || p.most != 0):
		return d, errChunks
	case !slices.Contains([]string{"", feedbackCCFB, feedbackTransport}, p.feedback):
		return d, fmt.Errorf("%w, got %.32q", errFeedback, p.feedback)
	case p.count < 0:
		return d, fmt.Errorf("%w, got %d", errCount, p.count)
	case p.gap < 0 || p.gap > 100*time.Millisecond:
		return d, fmt.Errorf("%w, got %v", errGap, p.gap)
	}
	if p.capture.Background, err = depth.ParseBackground(p.background); err != nil {
		return d, fmt.Errorf("--background: %w", err)
	}
	if err := p.cameras.Set(&p.capture.RealSense, log); err != nil {
		return d, err
	}
	if d.codec, err = codecs.Choose(p.codec, log); err != nil {
		return d, err
	}
	d.params = codec.Params{PositionBits: p.bits, Speed: p.speed, NoColors: p.colorless,
		Box: volumetric.BoundingBox{Max: [3]float32{1, 1, 1}}}
	if err := d.params.Validate(); err != nil {
		return d, fmt.Errorf("--bits, --speed: %w", err)
	}
	if d.field, d.sampler, err = p.view(); err != nil {
		return d, err
	}
	if d.limits, err = p.limits(); err != nil {
		return d, err
	}
	d.sender = stream.SenderConfig{Congestion: congestion.DefaultConfig(), Pacing: pacing.Mode(p.pacing)}
	d.sender.Congestion.Min, d.sender.Congestion.Start, d.sender.Congestion.Max = d.limits.Min, d.limits.Start,
		d.limits.Max
	d.sender.Congestion.Controller = cmp.Or(p.controller, congestion.ControllerAuto)
	if err := d.sender.Congestion.Validate(); err != nil {
		return d, fmt.Errorf("--controller: %w", err)
	}
	if err := d.sender.Pacing.Validate(); err != nil {
		return d, fmt.Errorf("--pacing: %w", err)
	}
	return d, nil
}

// view parses the flags that weigh points by the view: the whole object by the region of its centre, or each point by
// its own region, and each point by its distance. The sampler is nil if points are not weighed individually.
func (p *producing) view() (field pointcloud.FieldOfView, sampler *lod.Sampler, err error) {
	if by := cmp.Or(p.regionBy, regionByObject); by != regionByObject && by != regionByPoint {
		return field, nil, fmt.Errorf("%w, got %.32q", errRegionBy, p.regionBy)
	}
	if field, err = p.seeing.Field(); err != nil {
		return field, nil, err
	}
	var points pointcloud.FieldOfView
	if p.regionBy == regionByPoint {
		points, field = field, points
	}
	config, err := p.seeing.Config(points)
	if err != nil || !config.Reduces() {
		return field, nil, err
	}
	sampler, err = lod.New(config)
	return field, sampler, err
}

// limits returns the limits of the rate. The defaults are those of paper 000.
func (p *producing) limits() (congestion.Limits, error) {
	limits, err := congestion.Profile("paper000")
	if err != nil {
		return limits, err
	}
	if p.least != 0 {
		limits.Min, limits.Start = volumetric.Bitrate(p.least), volumetric.Bitrate(p.least)
	}
	if p.most != 0 {
		limits.Max = volumetric.Bitrate(p.most)
	}
	if p.rate != 0 {
		limits.Min, limits.Start, limits.Max = volumetric.Bitrate(p.rate), volumetric.Bitrate(p.rate),
			volumetric.Bitrate(p.rate)
	}
	if err := limits.Validate(); err != nil {
		return limits, fmt.Errorf("--min-bitrate, --max-bitrate: %w", err)
	}
	return limits, nil
}

const (
	// rateShare is the fraction of the estimate that frames use. Frames are within 5 % of their target, so that they
	// stay below the estimate.
	rateShare = 0.95
	// busyShare is the fraction of the frame interval that encoding may use. The rest is for the other steps.
	busyShare = 0.9
)

// control returns the Control for a source's frames; nil in the mode of paper 002.
func (p *producing) control(d *settings, rate float64) (*individual.Control, error) {
	if p.mode == rendezvous.ModePaper002 {
		return nil, nil
	}
	return individual.New(individual.Config{
		FrameRate: rate, Min: d.limits.Min, Max: d.limits.Max, Share: rateShare,
		FragmentBytes: payload.FragmentSize, PacketBytes: stream.PacketBytes, FrameBytes: producer.FrameBytes,
		BusyShare: busyShare,
	}, d.codec, d.params)
}

// run produces until the context ends, the time limit is reached, or the other side ends.
func (p *producing) run(ctx context.Context, out, console io.Writer, log *slog.Logger) error {
	d, err := p.check(log)
	if err != nil {
		return err
	}
	source, err := capture.OpenOn(wallclock.Clock{}, p.source, p.capture)
	if err != nil {
		return fmt.Errorf("--source: %w", err)
	}
	defer func() { _ = source.Close() }()
	d.params.Box = source.Info().Box
	control, err := p.control(&d, source.Info().FrameRate)
	if err != nil {
		return err
	}
	books, err := p.books()
	if err != nil {
		return err
	}
	conn, err := p.meet(ctx, log)
	if err != nil {
		_, closing := books.End(0)
		return errors.Join(err, closing)
	}
	defer conn.Close()
	s := &sender{
		flags: p, settings: d, source: source, control: control, books: books, conn: conn, console: console, log: log,
		gaze:        producer.NewGaze(d.field, d.sampler, source.Info().Box),
		negotiation: make(chan rendezvous.Message, negotiationBacklog),
	}
	summary, err := s.run(ctx)
	return errors.Join(err, summary.print(out, p.json))
}
