package pointcloud

import (
	"fmt"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Tiler says which tile each point of a cloud belongs to. *Tiling cuts by direction, *CameraTiling by the cameras that saw a point,
// *OctantTiling along three planes, *ClusterTiling around centres of its own (k-means), *LabelTiling by label.
type Tiler interface {
	// Len is the number of tiles, 1 to volumetric.MaxTiles.
	Len() int
	// Learn is given every frame before its points are assigned. A tiler that depends on what is captured takes from the first frame with points
	// what it needs; that frame may lack it, which gives an error around ErrTiling. Later frames change nothing.
	Learn(src *Cloud) error
	// Assign writes the tile of each of the cloud's points from begin on, as many as into takes. It may be called by several goroutines at once.
	Assign(src *Cloud, begin int, into []uint8)
	// Tiles describes the tiles for signalling. Boxes that depend on what is captured are those of the first frame, with some room to move; they
	// are the object's whole box before, and for tiles that were empty then.
	Tiles() []volumetric.Tile
}

// Splitter splits clouds by any tiler, on all processors. It keeps its working memory; one goroutine uses it at a time.
type Splitter struct{ points partition }

// Split puts every point of src into the cloud of its tile, in src's order; earlier points of these clouds are dropped and their memory is used
// again. Tiles may stay empty. It takes as many clouds as the tiler has tiles, and panics on another number. Its errors are those of Learn;
// the clouds are then as they were.
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
