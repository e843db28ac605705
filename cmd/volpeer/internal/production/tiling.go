package production

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/pkg/capture/synthetic"
	"github.com/volsfu/volsfu/pkg/codec/ladder"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// tilingHelp is the help text of the tilings.
const tilingHelp = "direction; raster, the default and only method of codec rgbd: 1, 2, 4 or 9 rectangles " +
	"of each camera; cameras, by the set of cameras that saw a point (1, 3, 7, 15, 31 … tiles for 1, 2, 3, " +
	"4, 5 … cameras); octants (8); " +
	"kmeans, around centres of the first frame; labels, by --label-tiles and one more tile for the rest"

// defaultQualities is used if neither --qualities nor --split is given.
const defaultQualities = "low,mid,high"

// The sampling methods.
const (
	samplingEven       = "even"
	samplingImportance = "importance"
	samplingVoxels     = "voxels"
)

// Errors of the flags of tiling and sampling.
var (
	errSampling = errors.New("--sampling: expected even, importance or voxels, the latter two in mode alternatives")
	errWeights  = errors.New("--label-weights: expected LABEL=FACTOR,… with labels of 0 to 65535, and --sampling " +
		"importance")
	errLabels = errors.New("--label-tiles: expected NAME=LABEL[+LABEL…],… with labels of 0 to 65535")
	errRaster = errors.New("--tiling raster: expected --codec rgbd")
	errSplit  = errors.New("--split: expected shares in % that add up to 100, as in 60,25,15 or 60,25,15:11:10, " +
		"with --mode descriptions and without --qualities")
)

// cut returns the tiling.
func (o *Options) cut() (pointcloud.TilingSpec, error) {
	spec := pointcloud.TilingSpec{By: o.Tiling, Tiles: o.Tiles, Seed: uint64(o.Capture.Seed)}
	switch {
	case o.Tiling == tilingRaster:
		return spec, errRaster
	case o.Labels != "" && o.Tiling != "labels":
		return spec, fmt.Errorf("%w, and with --tiling labels, got %.32q", errLabels, o.Tiling)
	case o.Labels != "":
		parts, err := parseParts(o.Labels)
		if err != nil {
			return spec, err
		}
		spec.Parts = parts
	case o.Tiling == "labels" && o.Source == "synthetic":
		spec.Parts = synthetic.Parts()
	case o.Tiling == "labels":
		return spec, fmt.Errorf("%w: labels are required with every source except synthetic", errLabels)
	}
	if err := spec.Check(); err != nil {
		return spec, fmt.Errorf("--tiling, --tiles: %w", err)
	}
	return spec, nil
}

// parseParts parses the labels of tiles.
func parseParts(text string) ([]pointcloud.Part, error) {
	var parts []pointcloud.Part
	for _, item := range strings.Split(text, ",") {
		name, list, _ := strings.Cut(item, "=")
		part := pointcloud.Part{Name: name}
		for _, label := range strings.Split(list, "+") {
			number, err := strconv.ParseUint(label, 10, 16)
			if err != nil || volumetric.ValidateName("tile", name) != nil {
				return nil, fmt.Errorf("%w, got %.64q", errLabels, item)
			}
			part.Labels = append(part.Labels, uint16(number))
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// levels returns the qualities.
func (o *Options) levels(mode volumetric.Mode) ([]ladder.Level, error) {
	if o.Split == "" {
		levels, err := ladder.ParseLevels(o.Qualities)
		if err != nil {
			return nil, fmt.Errorf("--qualities: %w", err)
		}
		return levels, nil
	}
	if mode != volumetric.ModeDescriptions || o.Qualities != defaultQualities {
		return nil, errSplit
	}
	shares, coding, coded := strings.Cut(o.Split, ":")
	if coded {
		coding = ":" + coding
	}
	var items []string
	sum := 0.0
	for i, share := range strings.Split(shares, ",") {
		percent, err := strconv.ParseFloat(share, 64)
		if err != nil {
			return nil, fmt.Errorf("%w, got %.64q", errSplit, o.Split)
		}
		sum += percent
		items = append(items, fmt.Sprintf("part%d=%s%%%s", i+1, share, coding))
	}
	// Shares are rounded to a few digits. The last share also takes the remainder to 100 %.
	if math.Abs(sum-100) > 0.05 {
		return nil, fmt.Errorf("%w: the shares add up to %g", errSplit, sum)
	}
	levels, err := ladder.ParseLevels(strings.Join(items, ","))
	if err != nil {
		return nil, fmt.Errorf("--split: %w", err)
	}
	rest := 1.0
	for _, level := range levels[:len(levels)-1] {
		rest -= level.Share
	}
	levels[len(levels)-1].Share = rest
	return levels, nil
}

// importance returns the weights of points, or nil for even samples.
func (o *Options) importance(mode volumetric.Mode) (*pointcloud.ImportanceConfig, error) {
	switch {
	case o.Weights != "" && o.Sampling != samplingImportance:
		return nil, errWeights
	case o.Sampling == "" || o.Sampling == samplingEven || o.Sampling == samplingVoxels &&
		mode == volumetric.ModeAlternatives:
		return nil, nil
	case o.Sampling != samplingImportance || mode != volumetric.ModeAlternatives:
		return nil, fmt.Errorf("%w, got %.32q in mode %s", errSampling, o.Sampling, mode)
	}
	config := pointcloud.DefaultImportance()
	if o.Weights != "" {
		config.Labels = make(map[uint16]float64)
		for _, item := range strings.Split(o.Weights, ",") {
			label, factor, _ := strings.Cut(item, "=")
			number, err := strconv.ParseUint(label, 10, 16)
			if err != nil {
				return nil, fmt.Errorf("%w, got %.64q", errWeights, item)
			}
			if config.Labels[uint16(number)], err = strconv.ParseFloat(factor, 64); err != nil {
				return nil, fmt.Errorf("%w, got %.64q", errWeights, item)
			}
		}
	}
	if _, err := pointcloud.NewImportance(config); err != nil {
		return nil, fmt.Errorf("--label-weights: %w", err)
	}
	return &config, nil
}
