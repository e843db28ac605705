package paper001

import (
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/cast"
	"github.com/volsfu/volsfu/lab/movement"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ownLeft and ownRight are the paths of two people who circle each other once in about nine seconds, 1.1 to 1.7 m
// apart, each with individual turns and knee bends. The paper's recording of two dancers is not public.
var (
	//go:embed left.csv
	ownLeft string
	//go:embed right.csv
	ownRight string
)

// choreograph writes the decisions of both.
func (p *dance) choreograph(m material, s *experiment.Settings, o *experiment.Outcome) error {
	left, err := p.path(p.Left, ownLeft)
	if err != nil {
		return err
	}
	right, err := p.path(p.Right, ownRight)
	if err != nil {
		return err
	}
	if p.Left == "" || p.Right == "" {
		o.Note("Movement: a synthetic path of two people who circle each other; the paper's recording of dancers is " +
			"not public.")
	}
	tiles, err := m.tiles(s.Seed)
	if err != nil {
		return err
	}
	length := cast.Warming + s.Duration
	left, right = looped(left, length), looped(right, length)
	if err := writeDecisions(s.File(decisionsFile(true)), movement.Decisions(left, grounded(right), tiles,
		danceQualities, length, looking)); err != nil {
		return err
	}
	return writeDecisions(s.File(decisionsFile(false)), movement.Decisions(right, grounded(left), tiles, danceQualities,
		length, looking))
}

// path reads a file with the path of a head, or the embedded one.
func (p *dance) path(name, own string) (movement.Path, error) {
	if name == "" {
		return movement.Read(strings.NewReader(own))
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	path, err := movement.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return path, nil
}

// looped repeats a path until it is long enough.
func looped(path movement.Path, length time.Duration) movement.Path {
	last := path[len(path)-1].At
	round := last - path[0].At + looking
	all := slices.Clone(path)
	for shift := round; all[len(all)-1].At < length; shift += round {
		for _, stand := range path {
			stand.At += shift
			all = append(all, stand)
		}
	}
	return all
}

// grounded returns the path of the feet below a head's path, the position of an object.
func grounded(path movement.Path) movement.Path {
	feet := slices.Clone(path)
	for i := range feet {
		feet[i].Y = 0
	}
	return feet
}

func decisionsFile(left bool) string {
	if left {
		return "decisions-left.csv"
	}
	return "decisions-right.csv"
}

func writeDecisions(path string, list []carriage.Decision) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := carriage.WriteDecisions(file, list); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

// tiles returns the tiles of the object. The tiles follow from the bounding box of the whole sequence, which a source
// knows for any number of points.
func (m material) tiles(seed uint64) ([]volumetric.Tile, error) {
	options := capture.DefaultOptions()
	options.Points, options.Seed = 1000, int(seed%(1<<31))
	source, err := capture.Open(m.source, options)
	if err != nil {
		return nil, err
	}
	defer func() { _ = source.Close() }()
	tiling, err := pointcloud.NewTiling(danceTiles, source.Info().Box)
	if err != nil {
		return nil, err
	}
	return tiling.Tiles(), nil
}
