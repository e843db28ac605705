package pointcloud

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TilingSpec specifies a tiling before the box of the object is known.
type TilingSpec struct {
	// By is one of Tilings; empty means "direction".
	By string
	// Tiles is the number of tiles. 0 means the default of the tiling: 4 by direction, 15 by (four)
	// cameras, 8 octants, 4 clusters, or the number of labelled parts plus the rest.
	Tiles int
	// Seed is the seed of k-means.
	Seed uint64
	// Parts contains the labelled parts.
	Parts []Part
}

// tilingKind is one row of the table of tilings.
type tilingKind struct {
	name  string
	usual int
	// expected describes the valid numbers of tiles.
	expected string
	open     func(s TilingSpec, box volumetric.BoundingBox) (Tiler, error)
}

// tilingKinds contains all tilings. A new tiling is a new row.
var tilingKinds = []tilingKind{
	{"direction", 4, fmt.Sprintf("one of %v", TileCounts()), openTiling},
	{"cameras", 15, "1, 3, 7, 15, 31, 63, 127 or 255, a tile for each set of cameras", openCameraTiling},
	{"octants", octants, "8", openOctantTiling},
	{"kmeans", 4, fmt.Sprintf("1 to %d", MaxClusters), openClusterTiling},
	{"labels", 0, "one for each labelled part, and one for the rest", openLabelTiling},
}

// Tilings returns the names of all tilings.
func Tilings() []string {
	var names []string
	for _, k := range tilingKinds {
		names = append(names, k.name)
	}
	return names
}

// Check returns an error that wraps ErrTiling if the specification is invalid.
func (s TilingSpec) Check() error {
	_, err := s.Open(volumetric.BoundingBox{})
	return err
}

// Open returns the tiler for an object within the box. The error wraps ErrTiling for an unknown
// tiling, an impossible number of tiles, and boxes that are not finite or have Max below Min.
func (s TilingSpec) Open(box volumetric.BoundingBox) (Tiler, error) {
	if s.By == "" {
		s.By = tilingKinds[0].name
	}
	at := slices.IndexFunc(tilingKinds, func(k tilingKind) bool { return k.name == s.By })
	if at < 0 {
		return nil, fmt.Errorf("%w: unknown tiling %.32q, expected %s", ErrTiling, s.By, strings.Join(Tilings(), ", "))
	}
	k, asked := tilingKinds[at], s.Tiles
	if s.Tiles == 0 {
		s.Tiles = k.usual
	}
	t, err := k.open(s, box)
	if err != nil {
		return nil, err
	}
	if asked != 0 && t.Len() != asked {
		return nil, fmt.Errorf("%w: %d tiles by %s, expected %s", ErrTiling, asked, s.By, k.expected)
	}
	return t, nil
}

func openTiling(s TilingSpec, box volumetric.BoundingBox) (Tiler, error) {
	t, err := NewTiling(s.Tiles, box)
	return &t, err
}

// openCameraTiling selects the number of cameras that results in the number of tiles or fewer; Open
// checks the number.
func openCameraTiling(s TilingSpec, box volumetric.BoundingBox) (Tiler, error) {
	return NewCameraTiling(max(1, min(bits.Len(uint(max(s.Tiles, 0)+1))-1, MaxCameras)), box)
}

func openOctantTiling(_ TilingSpec, box volumetric.BoundingBox) (Tiler, error) {
	return NewOctantTiling(box)
}

func openClusterTiling(s TilingSpec, box volumetric.BoundingBox) (Tiler, error) {
	return NewClusterTiling(s.Tiles, s.Seed, box)
}

func openLabelTiling(s TilingSpec, box volumetric.BoundingBox) (Tiler, error) {
	return NewLabelTiling(s.Parts, box)
}
