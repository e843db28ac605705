package pointcloud

import (
	"fmt"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Tiler assigns the points of a cloud to tiles. *Tiling divides by direction, *CameraTiling by the
// cameras that saw a point, *OctantTiling along three planes, *ClusterTiling by the nearest of
// several centres (k-means), *LabelTiling by label.
type Tiler interface {
	// Len returns the number of tiles, 1 to volumetric.MaxTiles.
	Len() int
	// Learn is called with every frame before the points are assigned. A tiler that depends on captured data is
	// configured from the first frame with points. If this frame lacks the necessary data, the error wraps ErrTiling.
	// Later frames change nothing.
	Learn(src *Cloud) error
	// Assign writes the tiles of the cloud's points from begin on to into. Several goroutines may
	// call Assign concurrently.
	Assign(src *Cloud, begin int, into []uint8)
	// Tiles describes the tiles for signalling. Boxes that depend on captured data are those of the first frame with a
	// margin. Before the first frame, and for tiles that were empty in that frame, the box is the whole box of the
	// object.
	Tiles() []volumetric.Tile
}

// Splitter splits clouds by any tiler, on all processors. A Splitter keeps working memory. One goroutine at a time uses
// a Splitter.
type Splitter struct{ points partition }

// Split copies every point of src to the cloud of the point's tile, in the order of src. Earlier points of these clouds
// are dropped and the memory is reused. Tiles may be empty. tiles must have one cloud per tile; otherwise Split panics.
// If Learn fails, Split returns the error and the clouds are unchanged.
func (s *Splitter) Split(t Tiler, src *Cloud, tiles []Cloud) error {
	if len(tiles) != t.Len() {
		panic(fmt.Sprintf("pointcloud: Split takes one cloud per tile: got %d for %d tiles", len(tiles), t.Len()))
	}
	if err := t.Learn(src); err != nil {
		return err
	}
	s.points.classify(src, len(tiles), t)
	s.points.scatter(tiles)
	return nil
}
