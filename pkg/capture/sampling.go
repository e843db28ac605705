package capture

import (
	"math/bits"
	"math/rand/v2"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// scatter samples a cloud down to at most limit points (0 = all) and puts them into random order, the same for the same seed and frame.
//
// The sample takes one point at random from each of limit equally long runs of the order that the points came in. That order is a scan
// nearly always, so the sample is spread more evenly over the surface than one of independent draws. The shuffle afterwards makes every
// prefix and every stride of the result a sample of the whole.
func scatter(cloud *pointcloud.Cloud, limit, seed, frame int) {
	random := rand.NewPCG(uint64(seed), uint64(frame))
	// What a swap takes away from place i is of no later run: run i + 1 begins behind it.
	swap := cloud.Swap
	if len(cloud.Labels)+len(cloud.Sources) == 0 {
		positions, colors := cloud.Positions, cloud.Colors
		swap = func(i, j int) {
			positions[i], positions[j] = positions[j], positions[i]
			colors[i], colors[j] = colors[j], colors[i]
		}
	}
	if n := cloud.Len(); limit > 0 && limit < n {
		first := 0
		for i := range limit {
			end := (i + 1) * n / limit
			swap(i, first+below(random, end-first))
			first = end
		}
		cloud.Truncate(limit)
	}
	for i := cloud.Len() - 1; i > 0; i-- {
		swap(i, below(random, i+1))
	}
}

// below draws a number from 0 to n - 1. Numbers differ in likelihood by n in 2^64 at most, which nobody can see.
func below(random *rand.PCG, n int) int {
	drawn, _ := bits.Mul64(random.Uint64(), uint64(n))
	return int(drawn)
}
