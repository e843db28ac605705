package parts

import (
	"sync"
	"sync/atomic"
)

// workers runs numbered jobs on the caller's goroutine and on as many helpers as the pool has free.
// It belongs to one encoder or decoder.
type workers struct {
	pool *Pool
	// do runs one job. All jobs are started, in the order of their numbers, whatever the results of
	// others.
	do   func(job int)
	jobs int
	next atomic.Int64
	busy sync.WaitGroup
	// help is the body of the helpers' goroutines. help is created once, so that starting a helper allocates nothing.
	help func()
}

func newWorkers(pool *Pool, do func(job int)) *workers {
	c := &workers{pool: pool, do: do}
	c.help = func() {
		c.work()
		<-c.pool.slots
		c.busy.Done()
	}
	return c
}

// run runs the given number of jobs. run returns when all jobs are complete and all helpers have ended.
func (c *workers) run(jobs int) {
	c.jobs = jobs
	c.next.Store(0)
	for helpers := 1; helpers < jobs; helpers++ {
		select {
		case c.pool.slots <- struct{}{}:
			c.busy.Add(1)
			go c.help()
			continue
		default:
		}
		break
	}
	c.work()
	c.busy.Wait()
}

func (c *workers) work() {
	for {
		job := int(c.next.Add(1)) - 1
		if job >= c.jobs {
			return
		}
		c.do(job)
	}
}
