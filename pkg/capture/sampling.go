package capture

import (
	"math/rand/v2"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// scatter samples a cloud down to at most limit points (0 = all) and puts them into random order, the same for the same seed and frame.
//
// The sample takes one point at random from each of limit equally long runs of the order that the points came in. That order is a scan
// nearly always, so the sample is spread more evenly over the surface than one of independent draws. The shuffle afterwards makes every
// prefix and every stride of the result a sample of the whole.
func scatter(cloud *pointcloud.Cloud, limit, seed, frame int) {
	random := rand.New(rand.NewPCG(uint64(seed), uint64(frame)))
	n := cloud.Len()
	if limit > 0 && limit < n {
		for i := range limit {
			first, end := i*n/limit, (i+1)*n/limit
			from := first + random.IntN(end-first)
			cloud.Positions[i], cloud.Colors[i] = cloud.Positions[from], cloud.Colors[from]
		}
		n = limit
		cloud.Positions, cloud.Colors = cloud.Positions[:n], cloud.Colors[:n]
	}
	random.Shuffle(n, func(i, j int) {
		cloud.Positions[i], cloud.Positions[j] = cloud.Positions[j], cloud.Positions[i]
		cloud.Colors[i], cloud.Colors[j] = cloud.Colors[j], cloud.Colors[i]
	})
}
