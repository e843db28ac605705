package production

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/produce"
	"github.com/volsfu/volsfu/pkg/codec/ladder"
	"github.com/volsfu/volsfu/pkg/codec/rgbd"
	"github.com/volsfu/volsfu/pkg/codec/webp"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// tilingRaster is the tiling of codecs of rasters, and defaultRasterTiles its number of rectangles per camera.
	tilingRaster       = "raster"
	defaultRasterTiles = 4
	// colorsJPEG and colorsWebP are the formats of colours.
	colorsJPEG = "jpeg"
	colorsWebP = "webp"
)

var errColors = errors.New("--color-format: expected jpeg, or webp with --codec rgbd")

// cloudFlags are the flags that select points of a cloud, which a codec of rasters has not.
var cloudFlags = []string{"points", "split", "sampling", "label-weights", "label-tiles", "color-quality", "audience",
	"regions", "region-angle", "region-outside", "detail-distance", "detail-least"}

// errCloudFlag is returned for flags that do not apply to a codec of rasters.
var errCloudFlag = errors.New("--codec rgbd sends rasters and no points: expected --tiling raster, --mode " +
	"alternatives, and none of --" + strings.Join(cloudFlags, ", --"))

// rasterSettings checks the flags of a codec of rasters.
func (o *Options) rasterSettings(mode volumetric.Mode, log *slog.Logger) (Settings, error) {
	if mode != volumetric.ModeAlternatives {
		return Settings{}, fmt.Errorf("%w; got --mode %s", errCloudFlag, mode)
	}
	for _, name := range cloudFlags {
		if o.given(name) {
			return Settings{}, fmt.Errorf("%w; got --%s", errCloudFlag, name)
		}
	}
	if o.Tiling != tilingRaster && o.given("tiling") {
		return Settings{}, fmt.Errorf("%w; got --tiling %.32s", errCloudFlag, o.Tiling)
	}
	tiles := o.Tiles
	if tiles == 0 {
		tiles = defaultRasterTiles
	}
	if err := rgbd.CheckTiles(tiles); err != nil {
		return Settings{}, fmt.Errorf("--tiles: %w", err)
	}
	compressed := o.ColorFormat == colorsWebP
	if compressed {
		if err := webp.Available(); err != nil {
			return Settings{}, fmt.Errorf("--color-format webp: %w", err)
		}
	} else if o.ColorFormat != "" && o.ColorFormat != colorsJPEG {
		return Settings{}, fmt.Errorf("%w; got %.32q", errColors, o.ColorFormat)
	}
	text := o.Qualities
	if text == defaultQualities {
		text = ladder.DefaultRasters
	}
	levels, err := ladder.ParseRasters(text)
	if err != nil {
		return Settings{}, fmt.Errorf("--qualities: %w", err)
	}
	// Rasters are not sampled.
	o.Capture.Points, o.Capture.Rasters = 0, true
	return Settings{Config: produce.Config{Rasters: &produce.Rasters{Tiles: tiles, Levels: levels, WebP: compressed},
		Mode: mode, Codec: rgbd.Codec, Limit: o.Within, Log: log}}, nil
}

// given reports whether a flag was on the command line.
func (o *Options) given(name string) bool {
	if o.flags == nil {
		return false
	}
	f := o.flags.Lookup(name)
	return f != nil && f.Changed
}
