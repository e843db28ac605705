package gallery

import (
	"slices"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// rateUnit is the unit in which optimum counts rates, in bit/s. Rates are rounded down, by less than 0.1 %, so that the
// result is an upper bound.
const rateUnit = 25_000

// Optimum returns the largest value of any decisions for 90 % of a downlink, relative to the value of a fixed split,
// while the receiver looks at the middle of the table.
func Optimum(split Split, link volumetric.Bitrate) float64 {
	all := guests()
	scene, eye := sceneOf(all), viewpoint(0)
	return optimum(&scene, eye, budgetOf(link)) / splitValue(split, all, &scene, eye, link)
}

// budgetOf returns the part of a downlink that decisions may use.
func budgetOf(link volumetric.Bitrate) volumetric.Bitrate {
	return volumetric.Bitrate(splitShare * float64(link))
}

// splitValue returns the value of a fixed split of a downlink.
func splitValue(
	split Split, all []guest, scene *allocate.Scene, eye allocate.Viewpoint, link volumetric.Bitrate,
) float64 {
	qualities := fixed(split, all, link)
	config := allocate.DefaultConfig().View
	return allocate.Value(&config, eye, scene,
		decisions(scene, func(object, _ int) volumetric.Quality { return qualities[object] }))
}

// optimum returns the largest value of any decisions within a budget: the solution of the knapsack problem by dynamic
// programming. The values of tiles add up.
func optimum(scene *allocate.Scene, eye allocate.Viewpoint, budget volumetric.Bitrate) float64 {
	config := allocate.DefaultConfig().View
	// best has the largest value for each number of units.
	best := make([]float64, int(budget)/rateUnit+1)
	for object := range scene.Objects {
		for tile := range scene.Objects[object].Tiles {
			before := slices.Clone(best)
			for q, level := range scene.Objects[object].Tiles[tile].Levels {
				value := allocate.Value(&config, eye, scene, decisions(scene, func(o, t int) volumetric.Quality {
					if o == object && t == tile {
						return volumetric.Quality(q)
					}
					return volumetric.QualityOff
				}))
				units := int(level.Rate) / rateUnit
				for n := units; n < len(best); n++ {
					best[n] = max(best[n], before[n-units]+value)
				}
			}
		}
	}
	return best[len(best)-1]
}
