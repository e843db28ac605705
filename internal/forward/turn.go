package forward

import (
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/panics"
)

// turn is the right to touch what is a writer's: one goroutine has it at a time. While the writer sleeps it is there to be taken, by who wakes the writer's
// goroutine, who thereby hands it over, or by a reader that does the writer's work itself.
//
// A burst of packets is often all that a writer gets for some milliseconds. To wake a goroutine for it takes a thread that sleeps, on a processor that does:
// about 50 µs of processor time for each burst in a virtual machine, as much as forwarding it to three receivers. So the reader that brings the burst goes on
// with it, unless it is so much work that processors should share it.
type turn struct {
	free   atomic.Bool
	handed chan struct{}
}

func newTurn() turn { return turn{handed: make(chan struct{}, 1)} }

// take takes the turn if it is free.
func (t *turn) take() bool { return t.free.Load() && t.free.CompareAndSwap(true, false) }

// hand gives the turn that the caller has to the writer's goroutine.
func (t *turn) hand() {
	// There is one turn, so there is room.
	t.handed <- struct{}{}
}

// wake makes the writer look at its signals and its inbox, now or after what it does.
func (w *writer) wake() {
	if w.turn.take() {
		w.turn.hand()
	}
}

// yield gives the turn up. It returns false if there is something to do that nobody has been told of; then the caller still has it.
func (w *writer) yield() bool {
	w.turn.free.Store(true)
	if w.nothing() && !w.stopping.Load() {
		return true
	}
	return !w.turn.take()
}

// nothing tells that nobody has anything for the writer.
func (w *writer) nothing() bool { return w.signalled.empty() && !w.inbox.pending.Load() }

// lendTime is the work that one reader does for writers before it goes on reading: what comes meanwhile waits in the socket's buffer, which has room for
// 8 MB. It is as long as a packet may stay. 16 packets to 10 receivers are half of it; sharing them with another processor saves them 100 µs and costs a
// fifth more processor time. What takes longer is handed over after that time and the burst
// at hand, which is half a millisecond; further writers that are expected to take longer are left to their goroutines. The first is not: a processor that was taken away for
// a moment would have the reader believe for many bursts that it is dear, and waking its goroutine costs a fifth more processor time and milliseconds on a busy machine.
const lendTime = time.Millisecond

// lend has the calling reader do the work of writers that sleep, after it has signalled to each of them that so many packets, one at least, have come.
// What is too much for one is left to the writers' goroutines. The list may be changed.
func lend(writers []*writer, packets int) {
	var expected time.Duration
	own := writers[:0]
	for _, w := range writers {
		if cost := time.Duration(packets) * time.Duration(w.cost.Load()); len(own) == 0 || expected+cost <= lendTime {
			expected += cost
			own = append(own, w)
		} else {
			w.forgetCost()
			w.wake()
		}
	}
	if len(own) == 0 {
		return
	}
	e := own[0].engine
	now := time.Duration(e.since(e.clock()))
	end := now + lendTime
	for _, w := range own {
		switch {
		case w.nothing():
			// Whoever had packets of the same batch has seen to these, too.
		case now >= end:
			w.wake()
		case w.turn.take():
			now = w.serve(packets, now, end)
		}
	}
}

// serve does the writer's work on a goroutine that is not its own, from now until end at the latest, and returns the time. Times are since the engine's start. What is left is the
// writer's own. A panic ends the process: the work is half done for receivers of other clients.
func (w *writer) serve(packets int, now, end time.Duration) time.Duration {
	defer panics.Shared()
	for !w.stopping.Load() {
		begin := now
		w.gathered = 0
		done := w.workUntil(end)
		now = time.Duration(w.engine.since(w.engine.clock()))
		// Of a batch of several publishers, whoever is served first has the work for all of them done.
		w.learnCost(now-begin, max(packets, w.gathered), done)
		if !done {
			break
		}
		if idle := w.idle(); w.at+idle < w.armed {
			w.armed = w.at + idle
			w.alarm.set(idle)
		}
		if w.yield() {
			return now
		}
		if now >= end {
			break
		}
	}
	w.turn.hand()
	return now
}

// costShare is the weight of the latest burst in the cost of a packet.
const costShare = 8

// learnCost keeps what an incoming packet costs the writer, all its receivers together. What a reader could not finish is taken to cost twice what it did
// of it.
func (w *writer) learnCost(took time.Duration, packets int, done bool) {
	cost, latest := w.cost.Load(), int64(took)/int64(packets)
	if done {
		w.cost.Store(cost + (latest-cost)/costShare)
	} else {
		w.cost.Store(max(cost, 2*latest))
	}
}

// forgetCost takes the writer for cheaper each time that its goroutine is left to work alone, of which nobody learns what it costs: a cost that is not so any more, or never
// was but for a moment, is tried again some bursts later.
func (w *writer) forgetCost() {
	cost := w.cost.Load()
	w.cost.Store(cost - cost/costShare)
}

// retryTime is after how long the writer's goroutine looks again where it was woken by time and found the turn taken: who has it may have set the alarm before.
const retryTime = time.Millisecond

// sleep returns when the writer's goroutine has the turn again.
func (w *writer) sleep() {
	for !w.alarm.wait(w.turn.handed) {
		if w.turn.take() {
			return
		}
		w.alarm.set(retryTime)
	}
}
