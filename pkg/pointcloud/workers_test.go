package pointcloud

import (
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// TestWorkerGroup expects that workers share a sequence without gaps, run concurrently, and have
// ended afterwards.
func TestWorkerGroup(t *testing.T) {
	defer goleak.VerifyNone(t)
	const points = 30_001
	for _, most := range []int{1, 2, 7} {
		c := workerGroup{most: most}
		workers := c.size(points)
		if workers != most {
			t.Fatalf("%d workers, want %d", workers, most)
		}
		for range 5 {
			var together sync.WaitGroup
			together.Add(workers)
			var mu sync.Mutex
			seen := make([]int, points)
			c.do(points, workers, func(worker, begin, end int) {
				// No worker continues before all have started.
				together.Done()
				together.Wait()
				mu.Lock()
				defer mu.Unlock()
				if begin != worker*points/workers {
					t.Errorf("worker %d begins at %d", worker, begin)
				}
				for i := begin; i < end; i++ {
					seen[i]++
				}
			})
			for i, n := range seen {
				if n != 1 {
					t.Fatalf("%d workers: point %d is done %d times", workers, i, n)
				}
			}
		}
	}
	if few := (&workerGroup{most: 8}).size(2*minShare + 1); few != 2 {
		t.Errorf("%d workers for %d points, want 2", few, 2*minShare+1)
	}
	if none := (&workerGroup{}).size(0); none != 1 {
		t.Errorf("%d workers for no points, want 1", none)
	}
}
