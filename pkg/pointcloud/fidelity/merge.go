package fidelity

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// merge checks a cloud and returns a copy without coinciding points.
func merge(cloud *pointcloud.Cloud) (*pointcloud.Cloud, error) {
	n := cloud.Len()
	switch {
	case n == 0:
		return nil, fmt.Errorf("%w: it has no points", ErrCloud)
	case len(cloud.Colors) != n:
		return nil, fmt.Errorf("%w: %d points and %d colours, expected equal numbers", ErrCloud, n, len(cloud.Colors))
	}
	type sum struct {
		color [3]int32
		count int32
	}
	merged := &pointcloud.Cloud{Positions: make([][3]float32, 0, n), Colors: make([][3]uint8, 0, n)}
	places, sums := make(map[[3]float32]int32, n), make([]sum, 0, n)
	for i, p := range cloud.Positions {
		for axis := range p {
			if p[axis]-p[axis] != 0 {
				return nil, fmt.Errorf("%w: point %d is at %v, expected finite coordinates", ErrCloud, i, p)
			}
		}
		at, known := places[p]
		if !known {
			at = int32(len(sums))
			places[p], sums = at, append(sums, sum{})
			merged.Append(p, [3]uint8{})
		}
		for channel, v := range cloud.Colors[i] {
			sums[at].color[channel] += int32(v)
		}
		sums[at].count++
	}
	for i, s := range sums {
		for channel := range s.color {
			merged.Colors[i][channel] = uint8((s.color[channel] + s.count/2) / s.count)
		}
	}
	return merged, nil
}

// inParallel divides 0..n-1 into one range per processor and calls do for each range concurrently.
func inParallel(n int, do func(begin, end int)) {
	workers := min(n, runtime.GOMAXPROCS(0))
	var busy sync.WaitGroup
	for w := range workers {
		busy.Go(func() { do(w*n/workers, (w+1)*n/workers) })
	}
	busy.Wait()
}
