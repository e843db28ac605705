// Package production is what is captured and what is made of it, as the flags of publishing and of recording say: the
// source, the tiles, the qualities, the codec and the audience. Its values are plain data; package produce does the
// work.
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

// Options is what the flags say.
type Options struct {
	// Source is where clouds come from, Capture how. Background and Cameras are flags that Settings sets in Capture.
	Source     string
	Capture    capture.Options
	Background []string
	Cameras    cameras.Flags
	// Tiling, Tiles and Labels say how the object is cut into tiles.
	Tiling string
	Tiles  int
	Labels string
	// Qualities, Split, Sampling and Weights say which points each quality has.
	Qualities, Split, Sampling, Weights string
	// Codec encodes. ColorQuality is 1 to 100, 0 for the codec's own.
	Codec        string
	ColorQuality int
	// Within is how long after its capture a frame is to be encoded, 0 for three frame intervals.
	Within time.Duration
	// VR2Gather asks for what VR2Gather's clients read.
	VR2Gather bool
	// Audience is where the viewers stand, and Worth what points are worth to them.
	Audience string
	Worth    worth.Flags
	// Name and Mode are those of the publication.
	Name, Mode string
}

// DefaultOptions are options before flags.
func DefaultOptions() Options { return Options{Capture: capture.DefaultOptions()} }

// Flags registers the flags that say what is captured, and what is made of it. points is the default of --points.
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

// PublishFlags registers the flags of production that publishing has and recording has not.
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

// Settings is what the flags come to: everything but the source, which takes its time to open.
type Settings struct {
	// Config has no box yet, which the source knows.
	produce.Config
	audience *audience // nil if all points count alike
}

// Settings checks the flags and reads them.
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

// Open opens the source, with the points that are worth sending to the audience.
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

// Prepare makes the producer of a source's frames, and describes what it will publish.
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

// describe describes a publication. Frames name their codec themselves; the format lets a receiver know before the
// first of them.
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
