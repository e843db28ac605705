package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/pflag"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/produce"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/peer/codecs"
	"github.com/volsfu/volsfu/internal/peer/opus"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/ladder"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// productionFlags are those that say what is captured, and what is made of it. Points is how many there are of each frame unless a flag says otherwise.
func (p *publication) productionFlags(f *pflag.FlagSet, points int) {
	f.StringVar(&p.source, "source", "synthetic", "where the clouds come from: "+strings.Join(capture.Kinds(), ", "))
	f.StringArrayVar(&p.background, "background", nil, "what of depth images is not the object, may be given several times: "+depth.BackgroundGrammar)
	f.StringVar(&p.capture.Calibration, "calibration", "", "where several cameras stand, a file in YAML or JSON; without, all stand at the origin")
	f.Float64Var(&p.capture.FPS, "fps", 0, "frames per second; 0 takes the source's own rate, 30 where it has none")
	f.IntVar(&p.capture.Points, "points", points, "points per frame at most; larger frames are sampled down evenly; 0 takes all")
	f.IntVar(&p.capture.Seed, "seed", 0, "looks and motion of the synthetic figure, the order of points, and the clusters of kmeans")
	p.cameras.Add(f)
	f.StringVar(&p.tiling, "tiling", "direction", "how the object is cut into tiles: "+tilingHelp)
	f.IntVar(&p.tiles, "tiles", 0, fmt.Sprintf("number of tiles; 0 is what is usual: 4 by direction, which has %v", pointcloud.TileCounts()))
	f.StringVar(&p.labels, "label-tiles", "", "tiles of --tiling labels as NAME=LABEL[+LABEL…],…; without, the body parts of the synthetic figure")
	f.StringVar(&p.qualities, "qualities", defaultQualities, ladder.Grammar)
	f.StringVar(&p.split, "split", "", "qualities as descriptions that add up, by their shares of the points in %, as in 60,25,15[:BITS[:SPEED]]")
	f.StringVar(&p.sampling, "sampling", samplingEven, "which points qualities with fewer than all keep: even; importance, which has more of them at edges of colours and shapes; or voxels, each the mean of what is within, as large as gives about so many")
	f.StringVar(&p.weights, "label-weights", "", "with --sampling importance, how much more likely points are kept by label, as LABEL=FACTOR,…")
	f.StringVar(&p.codec, "codec", "", codecs.Grammar+"; without, draco where it is built in")
	f.StringVar(&p.name, "publication", "body", "name of the publication")
	f.StringVar(&p.mode, "mode", string(volumetric.ModeAlternatives),
		"alternatives: receivers get one quality of each tile; descriptions: qualities complement each other, receivers get any of them")
}

// Errors of flags.
var (
	errMode = errors.New("--mode: expected alternatives or descriptions")
	errName = errors.New(`--publication: "audio" is the name of the sound beside it`)
	errRead = errors.New("--vr2gather: VR2Gather reads the codec cwi0 in mode alternatives")
)

// production is what the flags come to: everything but the source, which takes its time to open.
type production struct {
	config   produce.Config
	audience *audience       // nil where all points count alike
	sound    *opus.Recording // nil for none
	pose     *client.Pose    // nil where the object was not placed
}

// check reads the flags.
func (p *publication) check(log *slog.Logger) (production, error) {
	if err := p.room.Check(); err != nil {
		return production{}, err
	}
	return p.settings(log)
}

// settings reads the flags but for those of the room.
func (p *publication) settings(log *slog.Logger) (production, error) {
	mode := volumetric.Mode(p.mode)
	switch {
	case mode != volumetric.ModeAlternatives && mode != volumetric.ModeDescriptions:
		return production{}, fmt.Errorf("%w, got %.32q", errMode, p.mode)
	case p.vr2gather && (mode != volumetric.ModeAlternatives || p.codec != "" && p.codec != codec.CWI0.Name()):
		return production{}, fmt.Errorf("%w, got %.32q in mode %s", errRead, p.codec, mode)
	case p.audio != "" && p.name == soundName:
		return production{}, errName
	case p.seconds < 0:
		return production{}, fmt.Errorf("--seconds: %w", peer.ErrDuration)
	case p.within < 0:
		return production{}, fmt.Errorf("--encode-within: %w", peer.ErrDuration)
	case p.colors < 0 || p.colors > 100:
		return production{}, fmt.Errorf("--color-quality: expected 0 to 100, got %d", p.colors)
	}
	if err := volumetric.ValidateName("publication", p.name); err != nil {
		return production{}, err
	}
	background, err := depth.ParseBackground(p.background)
	if err != nil {
		return production{}, fmt.Errorf("--background: %w", err)
	}
	p.capture.Background = background
	if err := p.cameras.Set(&p.capture.RealSense, log); err != nil {
		return production{}, err
	}
	tiling, err := p.cut()
	if err != nil {
		return production{}, err
	}
	levels, err := p.levels(mode)
	if err != nil {
		return production{}, err
	}
	name := p.codec
	if p.vr2gather {
		name = codec.CWI0.Name()
	}
	c, err := codecs.Choose(name, log)
	if err != nil {
		return production{}, err
	}
	sound, err := openSound(p.audio)
	if err != nil {
		return production{}, fmt.Errorf("--audio: %w", err)
	}
	pose, err := placed(p.pose)
	if err != nil {
		return production{}, fmt.Errorf("--pose: %w", err)
	}
	importance, err := p.importance(mode)
	if err != nil {
		return production{}, err
	}
	onlookers, err := p.onlookers()
	if err != nil {
		return production{}, err
	}
	return production{
		config:   produce.Config{Tiling: tiling, Importance: importance, Voxels: p.sampling == samplingVoxels, Levels: levels, Mode: mode, Codec: c, ColorQuality: p.colors, Limit: p.within, Log: log},
		audience: onlookers, sound: sound, pose: pose,
	}, nil
}

// placed is a pose, nil for none.
func placed(text string) (*client.Pose, error) {
	if text == "" {
		return nil, nil
	}
	pose, err := parsePose(text)
	return &pose, err
}

// openSound is a recording, nil for none.
func openSound(name string) (*opus.Recording, error) {
	switch name {
	case "":
		return nil, nil
	case "tone":
		return opus.Tone(), nil
	default:
		return opus.Open(name)
	}
}

// describe describes a publication. Frames name their codec themselves; the format lets a receiver know before the first of them.
func describe(name string, config produce.Config, rate float64, tiles []volumetric.Tile, qualities []volumetric.QualityLevel) volumetric.Publication {
	return volumetric.Publication{
		Name:      name,
		Kind:      volumetric.KindVideo,
		Mode:      config.Mode,
		Codec:     volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000, Format: "codec=" + config.Codec.FourCC().String()},
		FrameRate: rate,
		Tiles:     tiles,
		Qualities: qualities,
	}
}
