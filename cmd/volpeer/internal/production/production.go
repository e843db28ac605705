// Package production has the flags that publishing and recording share: the source, the tiles, the qualities, the codec
// and the audience. Its types are plain data; package produce does the work.
package production

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/produce"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/peer/cameras"
	"github.com/volsfu/volsfu/internal/peer/codecs"
	"github.com/volsfu/volsfu/internal/peer/worth"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/ladder"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Options has the values of the flags.
type Options struct {
	// Source selects the source of clouds, Capture its options. Background and Cameras are flags that Settings copies
	// into Capture.
	Source     string
	Capture    capture.Options
	Background []string
	Cameras    cameras.Flags
	// Tiling, Tiles and Labels describe how the object is cut into tiles.
	Tiling string
	Tiles  int
	Labels string
	// Qualities, Split, Sampling and Weights select the points of each quality.
	Qualities, Split, Sampling, Weights string
	// Codec is the name of the codec. ColorQuality is 1 to 100, or 0 for the default of the codec.
	Codec        string
	ColorQuality int
	// Within is the time from capture to the end of encoding, 0 for three frame intervals.
	Within time.Duration
	// VR2Gather requests frames in the format of VR2Gather's clients.
	VR2Gather bool
	// Audience is the position of the viewers. Worth has the flags that weigh the points for them.
	Audience string
	Worth    worth.Flags
	// Name and Mode are those of the publication.
	Name, Mode string
}

// DefaultOptions returns the options before flags are parsed.
func DefaultOptions() Options { return Options{Capture: capture.DefaultOptions()} }

// Flags registers the flags of capturing and encoding. points is the default of --points.
func (o *Options) Flags(f *pflag.FlagSet, points int) {
	f.StringVar(&o.Source, "source", "synthetic", "where the clouds come from: "+strings.Join(capture.Kinds(), ", "))
	f.StringArrayVar(&o.Background, "background", nil,
		"what of depth images is not the object, may be given several times: "+depth.BackgroundGrammar)
	f.StringVar(&o.Capture.Calibration, "calibration", "",
		"where several cameras stand, a file in YAML or JSON; without, all stand at the origin")
	f.Float64Var(&o.Capture.FPS, "fps", 0, "frames per second; 0 takes the source's own rate, 30 where it has none")
	f.IntVar(&o.Capture.Points, "points", points,
		"points per frame at most; larger frames are sampled down evenly; 0 takes all")
	f.IntVar(&o.Capture.Seed, "seed", 0, "looks and motion of the synthetic figure, the order of points, and the "+
		"clusters of kmeans")
	o.Cameras.Add(f)
	f.StringVar(&o.Tiling, "tiling", "direction", "how the object is cut into tiles: "+tilingHelp)
	f.IntVar(&o.Tiles, "tiles", 0, fmt.Sprintf("number of tiles; 0 is what is usual: 4 by direction, which has %v",
		pointcloud.TileCounts()))
	f.StringVar(&o.Labels, "label-tiles", "",
		"tiles of --tiling labels as NAME=LABEL[+LABEL…],…; without, the body parts of the synthetic figure")
	f.StringVar(&o.Qualities, "qualities", defaultQualities, ladder.Grammar)
	f.StringVar(&o.Split, "split", "", "qualities as descriptions that add up, by their shares of the points in %, "+
		"as in 60,25,15[:BITS[:SPEED]]")
	f.StringVar(&o.Sampling, "sampling", samplingEven,
		"which points qualities with fewer than all keep: even; importance, which has more of them at edges of "+
			"colours and shapes; or voxels, each the mean of what is within, as large as gives about so many")
	f.StringVar(&o.Weights, "label-weights", "",
		"with --sampling importance, how much more likely points are kept by label, as LABEL=FACTOR,…")
	f.StringVar(&o.Codec, "codec", "", codecs.Grammar+"; without, draco where it is built in")
	f.StringVar(&o.Name, "publication", "body", "name of the publication")
	f.StringVar(&o.Mode, "mode", string(volumetric.ModeAlternatives),
		"alternatives: receivers get one quality of each tile; descriptions: qualities complement each other, "+
			"receivers get any of them")
}

// PublishFlags registers the flags that publishing has and recording has not.
func (o *Options) PublishFlags(f *pflag.FlagSet) {
	f.IntVar(&o.ColorQuality, "color-quality", 0, fmt.Sprintf("quality of colours that the codec keeps with loss, "+
		"1 to 100 as JPEG counts it; 0 is %d", codec.DefaultColorQuality))
	f.DurationVar(&o.Within, "encode-within", 0,
		"how long after its capture a frame is to be encoded: what will not be done by "+
			"then is not begun; 0 is three frame intervals")
	f.BoolVar(&o.VR2Gather, "vr2gather", false,
		"publish what clients of VR2Gather can read, too: frames with its header, and "+
			"the codec cwi0")
	f.StringVar(&o.Audience, "audience", "", "where those stand who look at the object, X,Y,Z in metres in its own "+
		"coordinates: "+
		"what they see less of has fewer points, by --regions and --detail-distance")
	o.Worth.Add(f, "")
}

// Errors of flags.
var (
	errMode = errors.New("--mode: expected alternatives or descriptions")
	errRead = errors.New("--vr2gather: VR2Gather reads the codec cwi0 in mode alternatives")
)

// Settings are the checked flags. The source is opened separately, because that takes time.
type Settings struct {
	// Config has no box, which the source determines.
	produce.Config
	audience *audience // nil if all points have the same weight
}

// Settings parses and checks the flags.
func (o *Options) Settings(log *slog.Logger) (Settings, error) {
	mode := volumetric.Mode(o.Mode)
	switch {
	case mode != volumetric.ModeAlternatives && mode != volumetric.ModeDescriptions:
		return Settings{}, fmt.Errorf("%w, got %.32q", errMode, o.Mode)
	case o.VR2Gather && (mode != volumetric.ModeAlternatives || o.Codec != "" && o.Codec != codec.CWI0.Name()):
		return Settings{}, fmt.Errorf("%w, got %.32q in mode %s", errRead, o.Codec, mode)
	case o.Within < 0:
		return Settings{}, fmt.Errorf("--encode-within: %w", peer.ErrDuration)
	case o.ColorQuality < 0 || o.ColorQuality > 100:
		return Settings{}, fmt.Errorf("--color-quality: expected 0 to 100, got %d", o.ColorQuality)
	}
	if err := volumetric.ValidateName("publication", o.Name); err != nil {
		return Settings{}, err
	}
	background, err := depth.ParseBackground(o.Background)
	if err != nil {
		return Settings{}, fmt.Errorf("--background: %w", err)
	}
	o.Capture.Background = background
	if err := o.Cameras.Set(&o.Capture.RealSense, log); err != nil {
		return Settings{}, err
	}
	tiling, err := o.cut()
	if err != nil {
		return Settings{}, err
	}
	levels, err := o.levels(mode)
	if err != nil {
		return Settings{}, err
	}
	name := o.Codec
	if o.VR2Gather {
		name = codec.CWI0.Name()
	}
	c, err := codecs.Choose(name, log)
	if err != nil {
		return Settings{}, err
	}
	importance, err := o.importance(mode)
	if err != nil {
		return Settings{}, err
	}
	onlookers, err := o.onlookers()
	if err != nil {
		return Settings{}, err
	}
	return Settings{
		Config: produce.Config{Tiling: tiling, Importance: importance, Voxels: o.Sampling == samplingVoxels,
			Levels: levels, Mode: mode, Codec: c, ColorQuality: o.ColorQuality, Limit: o.Within, Log: log},
		audience: onlookers,
	}, nil
}

// Open opens the source, reduced to the points that are worth sending to the audience.
func (o *Options) Open(settings Settings) (capture.Source, error) {
	source, err := capture.Open(o.Source, o.Capture)
	if err != nil {
		return nil, fmt.Errorf("--source: %w", err)
	}
	if settings.audience != nil {
		return settings.audience.before(source)
	}
	return source, nil
}

// Prepare returns the producer of a source's frames and the description of the publication.
func (o *Options) Prepare(ctx context.Context, settings Settings, source capture.Source) (*produce.Producer,
	volumetric.Publication, error) {
	config := settings.Config
	config.Box = source.Info().Box
	producer, err := produce.New(source, config)
	if err != nil {
		return nil, volumetric.Publication{}, err
	}
	tiles, qualities, err := producer.Measure(ctx)
	if err != nil {
		producer.Close()
		return nil, volumetric.Publication{}, err
	}
	description := describe(o.Name, config, source.Info().FrameRate, tiles, qualities)
	description.VR2Gather = o.VR2Gather
	return producer, description, nil
}

// describe describes a publication. Every frame names its codec. The format in the description names it before the
// first frame arrives.
func describe(name string, config produce.Config, rate float64, tiles []volumetric.Tile,
	qualities []volumetric.QualityLevel) volumetric.Publication {
	return volumetric.Publication{
		Name: name,
		Kind: volumetric.KindVideo,
		Mode: config.Mode,
		Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000, Format: "codec=" +
			config.Codec.FourCC().String()},
		FrameRate: rate,
		Tiles:     tiles,
		Qualities: qualities,
	}
}
