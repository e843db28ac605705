package carriage

import (
	"errors"
	"fmt"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/ladder"
	"github.com/volsfu/volsfu/pkg/codec/parts"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrMaterial reports an invalid Material. The wrapping error names the invalid value.
var ErrMaterial = errors.New("invalid material")

// Material describes the captured source and its encoding. Its fields have the meaning of the flags with the same names
// of volpeer publish.
type Material struct {
	Source    string
	Points    int
	Seed      int
	Tiling    string
	Tiles     int
	Qualities string
	Codec     string
	// NoColors omits colours.
	NoColors bool
}

// DefaultMaterial is the synthetic figure in one tile at one quality.
func DefaultMaterial() Material {
	return Material{Source: "synthetic", Points: 40000, Tiling: "direction", Tiles: 1, Qualities: "high",
		Codec: "draco"}
}

// recipe is a Material with its names resolved.
type recipe struct {
	material Material
	tiling   pointcloud.TilingSpec
	levels   []ladder.Level
	codec    codec.Codec
}

// read resolves the names of a Material.
func (m Material) read() (r recipe, err error) {
	r = recipe{material: m, tiling: pointcloud.TilingSpec{By: m.Tiling, Tiles: m.Tiles, Seed: uint64(m.Seed)}}
	if err := r.tiling.Check(); err != nil {
		return r, fmt.Errorf("%w: %w", ErrMaterial, err)
	}
	if r.levels, err = ladder.ParseLevels(m.Qualities); err != nil {
		return r, fmt.Errorf("%w: %w", ErrMaterial, err)
	}
	for _, l := range r.levels {
		if l.Rate > 0 || l.Voxel > 0 {
			return r, fmt.Errorf("%w: quality %q is a bitrate or made of voxels, expected points or a share",
				ErrMaterial, l.Name)
		}
	}
	if r.codec, err = parts.Find(m.Codec); err != nil {
		return r, fmt.Errorf("%w: %w", ErrMaterial, err)
	}
	return r, nil
}

// open opens the source on a clock.
func (r *recipe) open(clock capture.Clock, fps float64) (capture.Source, error) {
	options := capture.DefaultOptions()
	options.FPS, options.Points, options.Seed = fps, r.material.Points, r.material.Seed
	return capture.OpenOn(clock, r.material.Source, options)
}

// publicationName is the name of every publication of the lab.
const publicationName = "body"

// describe returns a publication of tiles in a codec, without their qualities.
func describe(fourCC codec.FourCC, fps float64, tiles []volumetric.Tile) volumetric.Publication {
	return volumetric.Publication{
		Name: publicationName, Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives,
		Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000,
			Format: "codec=" + fourCC.String()},
		FrameRate: fps, Tiles: tiles,
	}
}

// params returns the codec parameters of a quality.
func (r *recipe) params(l ladder.Level, box volumetric.BoundingBox) codec.Params {
	return codec.Params{PositionBits: l.Bits, Speed: l.Speed, Box: box, NoColors: r.material.NoColors}
}
