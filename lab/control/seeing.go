package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/capture/synthetic"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/claim"
)

// Parameters of the allocator's measurement.
const (
	// bitsPerPoint is the rate of a point: 30 frames per second of Draco's 20 bits.
	bitsPerPoint = 20 * frameRate
	// budgetPart is the divisor of the full rate that yields the budget.
	budgetPart = 4
	// viewerTiles is the number of tiles of a publication; publications is the number of publications in the largest
	// scene.
	viewerTiles, publications = 15, 20
	// The server allocates five times a second, from viewpoints that are a tenth of a second old: a round trip and two
	// frames.
	rowsPerAllocation, rowsAhead = viewerRate / 5, viewerRate / 10
	// viewerAngle is the vertical angle of view of a headset, in degrees.
	viewerAngle = 90
	// allocations is the number of timed allocations.
	allocations = 500
)

// seeing measures the visible quality that the allocator achieves within a budget for real viewers, and the allocator's
// run time.
func seeing(ctx context.Context, b *bench) ([]claim.Line, error) {
	object, err := person(viewerTiles)
	if err != nil {
		return nil, err
	}
	took, err := allocationTimes(object)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("allocating %d × %d tiles × 3 qualities, ", publications, viewerTiles)
	lines := []claim.Line{
		claim.AtMost(name+"p99", lab.Milliseconds(took.Percentile(0.99)), "ms", 1),
		claim.Information(name+"median", lab.Milliseconds(took.Percentile(0.5)), "ms"),
		claim.Information(name+"max", lab.Milliseconds(took.Max()), "ms"),
	}
	traces, err := readViewers(b.viewers, viewerAngle*math.Pi/180, 1)
	if errors.Is(err, fs.ErrNotExist) {
		return append(lines, claim.Skip("visible quality", fmt.Sprintf("no traces at %s; set %s", b.viewers,
			lab.TestDataVariable))), nil
	}
	if err != nil {
		return lines, err
	}
	ours, err := visible(ctx, allocate.StrategyVolsfu, object, traces)
	if err != nil {
		return lines, err
	}
	uniform, err := visible(ctx, allocate.StrategyUniform, object, traces)
	if err != nil {
		return lines, err
	}
	return append(lines,
		claim.AtLeast("visible quality, times that of uniform allocation", ours/uniform, "", 1.5),
		claim.Information("recorded viewers", float64(len(traces)), ""),
	), nil
}

// person returns the synthetic figure at the origin, split into count tiles, with levels of a quarter, half and all of
// its points.
func person(count int) (allocate.Object, error) {
	object := allocate.Object{Mode: volumetric.ModeAlternatives}
	source, err := synthetic.New(synthetic.DefaultConfig())
	if err != nil {
		return object, err
	}
	tiling, err := pointcloud.NewTiling(count, synthetic.Box())
	if err != nil {
		return object, err
	}
	var cloud pointcloud.Cloud
	source.At(0, &cloud)
	parts := make([]pointcloud.Cloud, count)
	tiling.Split(&cloud, parts)
	for i := range parts {
		full := volumetric.Bitrate(parts[i].Len()) * bitsPerPoint
		object.Tiles = append(object.Tiles, allocate.Tile{
			Box: parts[i].Bounds(),
			Levels: []allocate.Level{{Rate: full / 4, Detail: 0.25}, {Rate: full / 2, Detail: 0.5},
				{Rate: full, Detail: 1}},
		})
	}
	return object, nil
}

// quarter returns the budget for an object.
func quarter(object allocate.Object) (rate volumetric.Bitrate) {
	for _, tile := range object.Tiles {
		rate += tile.Levels[len(tile.Levels)-1].Rate
	}
	return rate / budgetPart
}

// visible returns the sum of the visible quality over all viewers with a strategy.
func visible(ctx context.Context, strategy string, object allocate.Object, traces [][]allocate.Viewpoint) (sum float64,
	err error) {
	cfg := allocate.DefaultConfig()
	cfg.Strategy = strategy
	allocator, err := allocate.New(cfg)
	if err != nil {
		return 0, err
	}
	for _, trace := range traces {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		scene := allocate.Scene{Budget: quarter(object), Objects: []allocate.Object{object}}
		scene.Objects[0].Tiles = slices.Clone(object.Tiles)
		var predictor allocate.Predictor
		for i := rowsAhead; i < len(trace); i++ {
			predictor.Observe(trace[i-rowsAhead])
			if i%rowsPerAllocation != 0 {
				continue
			}
			if v, ok := predictor.Predict(trace[i].At); ok {
				scene.Viewpoint = &v
			}
			result := allocator.Allocate(&scene)
			sum += allocate.VisibleQuality(trace[i], &scene, result.Tiles)
			for t := range scene.Objects[0].Tiles {
				scene.Objects[0].Tiles[t].Current = result.Tiles[0][t].Qualities
			}
		}
	}
	return sum, nil
}

// allocationTimes measures allocations in a room in which publications stand in a circle around a turning viewer.
func allocationTimes(object allocate.Object) (*lab.Distribution, error) {
	allocator, err := allocate.New(allocate.DefaultConfig())
	if err != nil {
		return nil, err
	}
	scene := allocate.Scene{Budget: publications * quarter(object)}
	for i := range publications {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / publications)
		o := object
		o.Tiles = slices.Clone(object.Tiles)
		o.Pose.Position = [3]float64{3 * sin, 0, 3 * cos}
		scene.Objects = append(scene.Objects, o)
	}
	var took lab.Distribution
	for i := range allocations {
		scene.Viewpoint = &allocate.Viewpoint{
			Position: [3]float64{0, 1.6, 0}, Orientation: turned(0, float64(3*i), 0), FOV: viewerAngle * math.Pi / 180,
			Aspect: 1,
		}
		began := time.Now()
		result := allocator.Allocate(&scene)
		took.Add(time.Since(began))
		for n := range scene.Objects {
			for t := range scene.Objects[n].Tiles {
				scene.Objects[n].Tiles[t].Current = result.Tiles[n][t].Qualities
			}
		}
	}
	return &took, nil
}
