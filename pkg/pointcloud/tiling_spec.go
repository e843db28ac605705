package pointcloud

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TilingSpec says how clouds are to be cut, before it is known what they hold.
type TilingSpec struct {
	// By is one of Tilings; empty is "direction".
	By string
	// Tiles is the number of tiles; 0 is what is usual for that tiling: 4 by direction, 15 by (four) cameras, 8 octants, 4 clusters, and
	// as many as there are labelled parts, and the rest.
	Tiles int
	// Seed chooses the clusters of k-means.
	Seed uint64
	// Parts are the labelled parts.
	Parts []Part
}

// tilingKind is one row of the table of tilings.
type tilingKind struct {
	name  string
	usual int
	// expected says which numbers of tiles there are.
	expected string
	open     func(s TilingSpec, box volumetric.BoundingBox) (Tiler, error)
}

// tilingKinds are the tilings that exist. A new one is a new row.
var tilingKinds = []tilingKind{
	{"direction", 4, fmt.Sprintf("one of %v", TileCounts()), openTiling},
	{"cameras", 15, "1, 3, 7, 15, 31, 63, 127 or 255, a tile for each set of cameras", openCameraTiling},
	{"octants", octants, "8", openOctantTiling},
	{"kmeans", 4, fmt.Sprintf("1 to %d", MaxClusters), openClusterTiling},
	{"labels", 0, "one for each labelled part, and one for the rest", openLabelTiling},
}

// Tilings are the names of the tilings that exist.
func Tilings() []string {
	var names []string
	for _, k := range tilingKinds {
		names = append(names, k.name)
	}
	return names
}

// Check reports what is wrong with the specification, wrapped around ErrTiling.
func (s TilingSpec) Check() error {
	_, err := s.Open(volumetric.BoundingBox{})
	return err
}

// Open makes the tiler for an object within the box. An unknown tiling, a number of tiles that it cannot have, and boxes that are not finite
// or have Max below Min give an error around ErrTiling.
func (s TilingSpec) Open(box volumetric.BoundingBox) (Tiler, error) {
	if s.By == "" {
		s.By = tilingKinds[0].name
	}
	at := slices.IndexFunc(tilingKinds, func(k tilingKind) bool { return k.name == s.By })
	if at < 0 {
		return nil, fmt.Errorf("%w: by %.32q, expected %s", ErrTiling, s.By, strings.Join(Tilings(), ", "))
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

// openCameraTiling takes the number of cameras that makes so many tiles or fewer, as Open finds out.
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
