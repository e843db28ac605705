package fidelity

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// merge checks a cloud and returns a copy without coinciding points, in the order of the coordinates. The measures
// therefore do not depend on the order of points.
func merge(cloud *pointcloud.Cloud) (*pointcloud.Cloud, error) {
	n := cloud.Len()
	switch {
	case n == 0:
		return nil, fmt.Errorf("%w: it has no points", ErrCloud)
	case len(cloud.Colors) != n:
		return nil, fmt.Errorf("%w: %d points and %d colours, expected equal numbers", ErrCloud, n, len(cloud.Colors))
	}
	order := make([]int32, n)
	for i, p := range cloud.Positions {
		for axis := range p {
			if p[axis]-p[axis] != 0 {
				return nil, fmt.Errorf("%w: point %d is at %v, expected finite coordinates", ErrCloud, i, p)
			}
		}
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		p, q := &cloud.Positions[a], &cloud.Positions[b]
		return cmp.Or(cmp.Compare(p[0], q[0]), cmp.Compare(p[1], q[1]), cmp.Compare(p[2], q[2]))
	})
	merged := &pointcloud.Cloud{Positions: make([][3]float32, 0, n), Colors: make([][3]uint8, 0, n)}
	for begin := 0; begin < n; {
		position := cloud.Positions[order[begin]]
		var sum [3]int
		end := begin
		for ; end < n && cloud.Positions[order[end]] == position; end++ {
			for channel, v := range cloud.Colors[order[end]] {
				sum[channel] += int(v)
			}
		}
		var mean [3]uint8
		count := end - begin
		for channel, v := range sum {
			mean[channel] = uint8((v + count/2) / count)
		}
		merged.Append(position, mean)
		begin = end
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
