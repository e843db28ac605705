package capture

import (
	"math/bits"
	"math/rand/v2"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// scatter samples a cloud to at most limit points (0 = all) and puts them in random order. The
// result is the same for the same seed and frame.
//
// The sample contains one random point from each of limit runs of equal length in the order of the
// points. This order is nearly always a scan, so that the sample is spread more evenly over the
// surface than independent draws. After the shuffle, every prefix and every stride of the result is
// a sample of the whole.
func scatter(cloud *pointcloud.Cloud, limit, seed, frame int) {
	random := rand.NewPCG(uint64(seed), uint64(frame))
	// A swap removes no point of a later run from place i: run i + 1 begins after it.
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

// below returns a random number from 0 to n - 1. The probabilities differ by at most n in 2^64.
func below(random *rand.PCG, n int) int {
	drawn, _ := bits.Mul64(random.Uint64(), uint64(n))
	return int(drawn)
}
