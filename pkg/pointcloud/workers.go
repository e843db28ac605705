package pointcloud

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// crew runs steps over a sequence of points on all processors. The sequence is cut into equal ranges, one per worker; a step returns once
// all have done theirs, and no goroutine outlives it. Its owner keeps the steps as function values, so that nothing is allocated per frame.
type workerGroup struct {
	// most is how many workers there are at most; 0 is one per processor.
	most int

	step    func(worker, begin, end int)
	points  int
	workers int
	next    atomic.Int64
	busy    sync.WaitGroup
	part    func()
}

// minShare is how many points a worker gets at least. A goroutine starts within some 2 µs, in which one alone does 500 points of a step.
const minShare = 4096

// size is how many workers a sequence of so many points gets.
func (c *workerGroup) size(points int) int {
	most := c.most
	if most == 0 {
		most = runtime.GOMAXPROCS(0)
	}
	return max(1, min(most, points/minShare))
}

// do runs a step over that many points with that many workers.
func (c *workerGroup) do(points, workers int, step func(worker, begin, end int)) {
	if workers == 1 {
		step(0, 0, points)
		return
	}
	if c.part == nil {
		c.part = func() {
			c.work()
			c.busy.Done()
		}
	}
	c.step, c.points, c.workers = step, points, workers
	c.next.Store(0)
	c.busy.Add(workers - 1)
	for range workers - 1 {
		go c.part()
	}
	c.work()
	c.busy.Wait()
}

// work does the next range.
func (c *workerGroup) work() {
	worker := int(c.next.Add(1)) - 1
	c.step(worker, worker*c.points/c.workers, (worker+1)*c.points/c.workers)
}
