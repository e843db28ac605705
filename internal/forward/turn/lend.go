package turn

import (
	"math"
	"time"
)

// Forever is the end of work that does not end by time.
const Forever = time.Duration(math.MaxInt64)

// LendTime is the work that one reader does for workers before it goes on reading: what comes meanwhile waits in the
// socket's buffer, which has room for 8 MB. It is as long as a packet may stay. 16 packets to 10 receivers are half of
// it. Sharing them with another processor saves them 100 µs and costs a fifth more processor time. Work that takes
// longer is handed over after that time and the burst at hand, which is half a millisecond. Further workers that are
// expected to take longer are left to their goroutines. The first is not: if a processor was taken away for a moment,
// the reader would take the worker for expensive for many bursts, and waking its goroutine costs a fifth more processor
// time and milliseconds on a busy machine.
const LendTime = time.Millisecond

// Lend has the calling reader do the work of workers that sleep, after the reader has signalled to each of them that so
// many packets, at least one, have come. What is too much for one reader is left to the workers' goroutines. Lend may
// change the list.
func Lend(turns []*Turn, packets int) {
	var expected time.Duration
	own := turns[:0]
	for _, t := range turns {
		if cost := time.Duration(packets) * time.Duration(t.cost.Load()); len(own) == 0 || expected+cost <= LendTime {
			expected += cost
			own = append(own, t)
		} else {
			t.forgetCost()
			t.Wake()
		}
	}
	if len(own) == 0 {
		return
	}
	clock := own[0].clock
	now := time.Duration(clock.Since(clock.Now()))
	end := now + LendTime
	for _, t := range own {
		switch {
		case !t.work.Pending():
			// Another reader that had packets of the same batch has done the work for these, too.
		case now >= end:
			t.Wake()
		case t.take():
			now = t.serve(packets, now, end)
		}
	}
}

// costShare is the weight of the latest burst in the cost of a packet.
const costShare = 8

// learnCost keeps what an incoming packet costs the worker. Work that a reader could not finish is taken to cost twice
// what the reader did of it.
func (t *Turn) learnCost(took time.Duration, packets int, done bool) {
	cost, latest := t.cost.Load(), int64(took)/int64(packets)
	if done {
		t.cost.Store(cost + (latest-cost)/costShare)
	} else {
		t.cost.Store(max(cost, 2*latest))
	}
}

// forgetCost reduces the cost each time that the worker's goroutine is left to work alone, because then nobody learns
// what the work costs: a cost that is no longer so high, or was so for a moment only, is tried again some bursts later.
func (t *Turn) forgetCost() {
	cost := t.cost.Load()
	t.cost.Store(cost - cost/costShare)
}
