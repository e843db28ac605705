package turn

import (
	"math"
	"sync/atomic"
	"time"
)

// Forever is the end of work without a time limit.
const Forever = time.Duration(math.MaxInt64)

// InlineTime is the maximum time that one reader works for workers before it reads again. Packets that arrive meanwhile
// wait in the socket's buffer, which has room for 8 MB. The limit equals the maximum residence of a packet. Sending 16
// packets to 10 receivers takes half of the limit; sharing them with another processor would save 100 µs and cost a
// fifth more processor time. Longer work is handed over after InlineTime and the burst in progress, which takes half a
// millisecond. Further workers whose expected work exceeds the limit are left to their goroutines. The first worker is
// always run by the reader: after a short preemption a worker would look expensive for many bursts, and waking its
// goroutine costs a fifth more processor time, and milliseconds on a busy machine.
const InlineTime = time.Millisecond

// RunInline runs sleeping workers on the calling reader. The reader has signalled to each worker that packets, at least
// one, have arrived. Work that exceeds InlineTime is left to the workers' goroutines. RunInline may change the list.
func RunInline(turns []*Turn, packets int) {
	var expected time.Duration
	own := turns[:0]
	for _, t := range turns {
		if cost := time.Duration(packets) * time.Duration(t.cost.Load()); len(own) == 0 || expected+cost <= InlineTime {
			expected += cost
			own = append(own, t)
		} else {
			t.cost.forget()
			t.Wake()
		}
	}
	if len(own) == 0 {
		return
	}
	now := own[0].now()
	end := now + InlineTime
	for _, t := range own {
		switch {
		case !t.work.Pending():
			// Another reader with packets of the same batch has already done the work.
		case now >= end:
			t.Wake()
		case t.take():
			now = t.runInline(packets, now, end)
		}
	}
}

// costShare is the inverse of the weight of the latest burst or tick in a mean cost.
const costShare = 8

// meanCost is the mean of recent costs in nanoseconds.
type meanCost struct{ atomic.Int64 }

// learn updates the mean with the latest cost. Work that was not finished counts as twice the cost of the finished
// part.
func (c *meanCost) learn(latest int64, done bool) {
	mean := c.Load()
	if done {
		c.Store(mean + (latest-mean)/costShare)
	} else {
		c.Store(max(mean, 2*latest))
	}
}

// forget reduces the cost each time the work is left to the worker's goroutine, because the cost is not measured then.
// A cost that was high only for a moment is therefore tried again some bursts later.
func (c *meanCost) forget() {
	mean := c.Load()
	c.Store(mean - mean/costShare)
}
