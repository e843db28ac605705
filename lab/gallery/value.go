package gallery

import (
	"math"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// turned is the angle by which the receiver turns to the left in the second third of a run, to the people beside it.
const turned = 40 * math.Pi / 180

// decisions returns the decisions with the given quality of each tile.
func decisions(scene *allocate.Scene, quality func(object, tile int) volumetric.Quality) [][]allocate.Decision {
	all := make([][]allocate.Decision, len(scene.Objects))
	for i := range scene.Objects {
		for j := range scene.Objects[i].Tiles {
			all[i] = append(all[i], allocate.Decision{Qualities: allocate.Qualities(quality(i, j))})
		}
	}
	return all
}
