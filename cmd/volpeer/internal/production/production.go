// Package production has the flags that publishing and recording share: the source, the tiles, the qualities, the codec
// and the audience. The types are plain data; package produce does the work.
package production

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/produce"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/peer/cameras"
	"github.com/volsfu/volsfu/internal/peer/codecs"
	"github.com/volsfu/volsfu/internal/peer/lod"
	"github.com/volsfu/volsfu/internal/peer/stand"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/ladder"
	"github.com/volsfu/volsfu/pkg/codec/rgbd"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Options has the values of the flags.
type Options struct {
	// Source selects the source of clouds, Capture has the options of the source. Background and Cameras are flags that
	// Settings copies into Capture.
	Source     string
	Capture    capture.Options
	Background []string
	Cameras    cameras.Flags
	// Stand moves the person before cameras without a calibration onto the floor: see package stand.
	Stand bool
	// Tiling, Tiles and Labels describe how the object is cut into tiles.
	Tiling string
	Tiles  int
	Labels string
	// Qualities, Split, Sampling and Weights select the points of each quality.
	Qualities, Split, Sampling, Weights string
	// Codec is the name of the codec. ColorQuality is 1 to 100, or 0 for the default of the codec.
	Codec        string
	ColorQuality int
	// ColorFormat is the format of the colours of a codec of rasters: "", colorsJPEG or colorsWebP.
	ColorFormat string
	// Within is the time from capture to the end of encoding, 0 for three frame intervals.
	Within time.Duration
	// VR2Gather requests frames in the format of VR2Gather's clients.
	VR2Gather bool
	// Audience is the position of the viewers. Detail has the flags that reduce the points for them.
	Audience string
	Detail   lod.Flags
	// Name and Mode are those of the publication.
	Name, Mode string

	// flags has the flags that were parsed, nil without a command line.
	flags *pflag.FlagSet
}

// DefaultOptions returns the options before flags are parsed.
func DefaultOptions() Options { return Options{Capture: capture.DefaultOptions()} }

// Flags registers the flags of capturing and encoding. points is the default of --points.
func (o *Options) Flags(f *pflag.FlagSet, points int) {
	o.flags = f
	f.StringVar(&o.Source, "source", "synthetic", "source of the point clouds: "+strings.Join(capture.Kinds(), ", "))
	f.StringArrayVar(&o.Background, "background", nil,
		"background to remove from depth images; may be repeated: "+depth.BackgroundGrammar)
	f.StringVar(&o.Capture.Calibration, "calibration", "",
		"file in YAML or JSON with the poses of several cameras; by default all are at the origin")
	f.StringVar(&o.Capture.VirtualCameras, "virtual-cameras", "", "file in YAML or JSON of virtual depth cameras "+
		"that see the source synthetic or glb")
	f.BoolVar(&o.Capture.Prune, "prune", false, "drop pixels of depth cameras whose surface another camera sees more "+
		"frontally")
	f.Float64Var(&o.Capture.FPS, "fps", 0, "frames per second; 0 means the rate of the source, or 30 if the source "+
		"has none")
	f.IntVar(&o.Capture.Points, "points", points,
		"largest number of points per frame; larger frames are sampled evenly; 0 means no limit")
	f.IntVar(&o.Capture.Seed, "seed", 0, "seed of the synthetic figure, of the order of points, and of the "+
		"clusters of kmeans; publish takes that of the figure from the identity if there is none")
	o.Cameras.Add(f)
	f.StringVar(&o.Tiling, "tiling", "direction", "method of cutting the object into tiles: "+tilingHelp)
	f.IntVar(&o.Tiles, "tiles", 0, fmt.Sprintf("number of tiles; 0 means the default of the method; direction has 4 "+
		"by default, of %v",
		pointcloud.TileCounts()))
	f.StringVar(&o.Labels, "label-tiles", "",
		"tiles of --tiling labels as NAME=LABEL[+LABEL…],…; the default is the body parts of the synthetic figure")
	f.StringVar(&o.Qualities, "qualities", defaultQualities, ladder.Grammar+"; "+ladder.RasterGrammar+
		", by default "+ladder.DefaultRasters)
	f.StringVar(&o.Split, "split", "", "qualities of mode descriptions, as shares of the points in %, "+
		"as in 60,25,15[:BITS[:SPEED]]")
	f.StringVar(&o.Sampling, "sampling", samplingEven,
		"method of reducing points: even; importance, which keeps more points at edges of "+
			"colours and shapes; or voxels, each the mean of its points, of a size that yields the number of points")
	f.StringVar(&o.Weights, "label-weights", "",
		"weights of labels for --sampling importance, as LABEL=FACTOR,…")
	f.StringVar(&o.Codec, "codec", "", codecs.Grammar+"; the default is draco, or zstd in a program without "+
		"Draco")
	f.StringVar(&o.ColorFormat, "color-format", colorsJPEG, "format of the colours of codec rgbd: jpeg; or webp, "+
		"which takes about two thirds of the bytes and three times the time, and needs libwebp")
	f.StringVar(&o.Name, "publication", "body", "name of the publication")
	f.StringVar(&o.Mode, "mode", string(volumetric.ModeAlternatives),
		"alternatives: a receiver gets one quality of each tile; descriptions: qualities complement each other and "+
			"a receiver gets any subset")
}

// PublishFlags registers the flags that publishing has and recording has not.
func (o *Options) PublishFlags(f *pflag.FlagSet) {
	f.IntVar(&o.ColorQuality, "color-quality", 0, fmt.Sprintf("quality of lossy colour coding, "+
		"1 to 100 as in JPEG; 0 means %d", codec.DefaultColorQuality))
	f.DurationVar(&o.Within, "encode-within", 0,
		"time from the capture to the end of encoding; a tile that would end later is "+
			"not encoded; 0 means three frame intervals")
	f.BoolVar(&o.VR2Gather, "vr2gather", false,
		"publish in a format that VR2Gather's clients can read: frames with its header and the codec cwi0")
	f.BoolVar(&o.Stand, "stand", true, "move the person before depth cameras without a calibration onto the floor: "+
		"height 0, above the origin, with the front to +z; false keeps the camera's coordinates")
	f.StringVar(&o.Audience, "audience", "", "position of the viewers, X,Y,Z in metres in the object's own "+
		"coordinates: points are reduced by --regions and --detail-distance")
	o.Detail.Add(f, "")
}

// Errors of flags.
var (
	errMode  = errors.New("--mode: expected alternatives or descriptions")
	errPrune = errors.New("--prune: expected a source with two depth cameras or more")
	errRead  = errors.New("--vr2gather: expected the codec cwi0 in mode alternatives")
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
	if o.Codec == rgbd.Codec.Name() {
		return o.rasterSettings(mode, log)
	}
	if o.ColorFormat != "" && o.ColorFormat != colorsJPEG {
		return Settings{}, fmt.Errorf("%w; got %.32q", errColors, o.ColorFormat)
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

// TakeLooksFrom derives the seed of the source synthetic from a name, unless --seed is given, so that the figures of
// two participants differ, and the figure of one participant is always the same.
func (o *Options) TakeLooksFrom(name string) {
	if o.Source != "synthetic" || o.given("seed") || o.Capture.Seed != 0 {
		return
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	o.Capture.Seed = int(h.Sum32() >> 1)
}

// Open opens the source, with the person on the floor, reduced to the points that the audience needs. A live camera is
// waited for.
func (o *Options) Open(ctx context.Context, settings Settings) (capture.Source, error) {
	source, err := capture.Open(o.Source, o.Capture)
	if err != nil {
		return nil, fmt.Errorf("--source: %w", err)
	}
	if n := len(source.Info().Cameras); o.Capture.Prune && n < 2 {
		return nil, errors.Join(fmt.Errorf("%w, got %d", errPrune, n), source.Close())
	}
	if o.Stand && o.Capture.Calibration == "" && stand.Applies(source.Info()) {
		standing, err := stand.NewSource(ctx, source)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("--source: %w", err), source.Close())
		}
		source = standing
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
	if config.Rasters != nil {
		rasters := *config.Rasters
		if rasters.Cameras = source.Info().Cameras; len(rasters.Cameras) == 0 {
			return nil, volumetric.Publication{}, fmt.Errorf("--codec rgbd: %w, or synthetic or glb with "+
				"--virtual-cameras; %q has no rasters", rgbd.ErrCloud, source.Info().Description)
		}
		config.Rasters = &rasters
	}
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

// describe describes a publication. Every frame names the codec. The format in the description names the codec before
// the first frame arrives.
func describe(name string, config produce.Config, rate float64, tiles []volumetric.Tile,
	qualities []volumetric.QualityLevel) volumetric.Publication {
	format := "codec=" + config.Codec.FourCC().String()
	if config.Rasters != nil && config.Rasters.WebP {
		format += ";colors=" + colorsWebP
	}
	return volumetric.Publication{
		Name:      name,
		Kind:      volumetric.KindVideo,
		Mode:      config.Mode,
		Codec:     volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000, Format: format},
		FrameRate: rate,
		Tiles:     tiles,
		Qualities: qualities,
	}
}
