package pointcloud

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// workerGroup runs steps over a sequence of points on all processors. The sequence is divided into equal ranges, one
// per worker. do returns when all workers are done; no goroutine outlives the call. The owner keeps the steps as
// function values, so that nothing is allocated per frame.
type workerGroup struct {
	// most is the maximum number of workers; 0 means one per processor.
	most int

	step    func(worker, begin, end int)
	points  int
	workers int
	next    atomic.Int64
	busy    sync.WaitGroup
	part    func()
}

// minShare is the minimum number of points per worker. Starting a goroutine takes about 2 µs, the
// time of 500 points of a step on one processor.
const minShare = 4096

// size returns the number of workers for a number of points.
func (c *workerGroup) size(points int) int {
	most := c.most
	if most == 0 {
		most = runtime.GOMAXPROCS(0)
	}
	return max(1, min(most, points/minShare))
}

// do runs a step over the points with the given number of workers.
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

// work runs the step for the next range.
func (c *workerGroup) work() {
	worker := int(c.next.Add(1)) - 1
	c.step(worker, worker*c.points/c.workers, (worker+1)*c.points/c.workers)
}
