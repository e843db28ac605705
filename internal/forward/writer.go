package forward

import (
	"container/heap"
	"sync/atomic"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

const (
	// groupWrites is after how many packets queued or sent a writer looks at the clock, at its signals and at its inbox. At 0.35 µs for sealing and 0.55 µs for
	// sending one in a long run, 32 are 11 to 18 µs: the error of the time that is used, and what audio that arrives may wait before it is queued.
	groupWrites = 32
	// housekeepingInterval is how often a writer looks for what is due by time: slots to detach, reports to send.
	housekeepingInterval = 100 * time.Millisecond
)

// writer forwards to the receivers it owns. All but the inbox, the stack of signals and the atomics belongs to who has the turn, one goroutine at a time: the
// writer's own, or a reader that does its work.
type writer struct {
	engine *Engine
	inbox  inbox
	// signalled are the followers that have something to read.
	signalled signalStack
	turn      turn
	alarm     alarm
	stopping  atomic.Bool
	// load is the number of slots of the receivers.
	load  atomic.Int64
	stats writerStats
	// cost is what an incoming packet has lately cost, in nanoseconds; armed is when the goroutine wakes by itself, since the engine's start.
	cost  atomic.Int64
	armed time.Duration

	ready readyHeap
	// paced are the receivers for which packets wait.
	paced     pacedHeap
	followers map[*Track]*follower
	receivers []*Receiver
	// now is the last reading of the clock, not much more than groupWrites packets old; at is the same since the engine's start.
	now time.Time
	at  time.Duration
	// writes counts packets queued, and packets sent, since then.
	writes int
	// unsent are the receivers that have something queued; arrived tells when what was queued since there were none had arrived.
	unsent  []*Receiver
	arrived []stay
	// flushDue is when the unsent are flushed at the latest.
	flushDue time.Time
	// housekeeping is when the next round is due.
	housekeeping time.Time
	unsettled    []*Slot
	reviewed     []*Slot
	touched      []*Slot
	reporting    []*Receiver

	orders  orders
	nacked  []rtcp.NackPair
	reports []rtcp.Packet
	// repair and repairHeader are the retransmission being written.
	repair       [maxPayload + 2]byte
	repairHeader rtp.Header
}

// stay is that of packets, one for each receiver: since when they came, or were intended to leave if that is later.
type stay struct {
	since   int64
	packets uint32
}

func newWriter(e *Engine) *writer {
	return &writer{
		engine:    e,
		turn:      newTurn(),
		alarm:     newTimerAlarm(),
		followers: make(map[*Track]*follower),
		now:       e.clock(),
	}
}

// run is the writer's goroutine. It begins with the turn.
func (w *writer) run() {
	defer w.alarm.stop()
	for !w.stopping.Load() {
		w.work()
		idle := w.idle()
		w.armed = w.at + idle
		if w.yield() {
			w.sleep(idle)
		}
	}
	w.letGo()
}

// forever is for how long a writer without receivers has nothing to do.
const forever = time.Hour

// idle is for how long there is nothing to do that is due by time.
func (w *writer) idle() time.Duration {
	if len(w.receivers) == 0 {
		return forever
	}
	idle := w.housekeeping.Sub(w.now)
	if len(w.paced) > 0 {
		idle = min(idle, w.paced[0].tick-w.at)
	}
	return idle
}

// stop makes the goroutine end.
func (w *writer) stop() {
	w.stopping.Store(true)
	w.wake()
}

// letGo gives back the packets at hand, and those that wait, and leaves the tracks.
func (w *writer) letGo() {
	for _, f := range w.followers {
		for _, a := range f.attachments {
			w.clear(a)
		}
		f.drop()
		f.track.leave(f)
	}
}

// work forwards until there is nothing to read and no tick due, and does what is asked and due. Nothing stays queued. Audio goes first; what has waited for its
// tick goes before what has just come.
func (w *writer) work() {
	w.readClock()
	for {
		if w.inbox.pending.Load() {
			w.obey()
		}
		w.collect()
		speaks := len(w.ready) > 0 && w.ready[0].track.audio
		if r := w.ticking(); r != nil && !speaks {
			w.tick(r)
		} else if len(w.ready) > 0 {
			w.forward(w.ready[0])
		} else {
			break
		}
		if w.writes >= groupWrites {
			w.rest()
		}
	}
	w.flushAll()
	w.rest()
}

// collect makes the followers that were signalled ready.
func (w *writer) collect() {
	for f := w.signalled.take(); f != nil; {
		next := f.below
		f.below = nil
		if !f.gone && f.readyIndex < 0 {
			w.resume(f)
		}
		f = next
	}
}

// resume makes a follower ready if it has a packet to read. Otherwise it rests until its reader signals again.
func (w *writer) resume(f *follower) {
	for !w.hold(f) {
		f.signalled.Store(false)
		// A packet that came between looking and clearing the flag was not signalled.
		if f.position == f.track.log.head.Load() || !f.signalled.CompareAndSwap(false, true) {
			return
		}
	}
	heap.Push(&w.ready, f)
}

// hold makes sure that the follower has a packet at hand, and tells its slots of frames that were lost on the way.
func (w *writer) hold(f *follower) bool {
	ok, lost := f.peek()
	if lost > 0 {
		w.overrun(f, lost)
	}
	return ok
}

// requeue puts a follower that stands first among the ready where it belongs now.
func (w *writer) requeue(f *follower) {
	if w.hold(f) {
		heap.Fix(&w.ready, f.readyIndex)
		return
	}
	heap.Remove(&w.ready, f.readyIndex)
	w.resume(f)
}

// readClock takes the time for what follows.
func (w *writer) readClock() {
	w.now = w.engine.clock()
	w.at = w.now.Sub(w.engine.started)
}

// rest is made after each group of packets: it takes the time, publishes counts, and does what is due.
func (w *writer) rest() {
	w.readClock()
	if len(w.unsent) > 0 && !w.now.Before(w.flushDue) {
		w.flushAll()
		w.readClock()
	}
	if len(w.reporting) > 0 {
		w.sendUrgentReports()
	}
	if !w.now.Before(w.housekeeping) {
		w.housekeeping = w.now.Add(housekeepingInterval)
		w.keepHouse()
	}
	w.publish()
}

// publish hands the counts since the last time to those who read them.
func (w *writer) publish() {
	if len(w.unsent) == 0 {
		now := w.engine.since(w.now)
		for _, a := range w.arrived {
			w.stats.residence.observe(time.Duration(now-a.since), a.packets)
		}
		w.arrived = w.arrived[:0]
	}
	w.writes = 0
	w.stats.publish()
}

// obey does what the inbox asks.
func (w *writer) obey() {
	w.orders = w.inbox.take(w.orders)
	for i, f := range w.orders.ended {
		w.detachAll(f)
		w.orders.ended[i] = nil
	}
	for i, s := range w.orders.slots {
		m := w.inbox.open(s, w.nacked)
		w.nacked = m.nacked
		if !s.receiver.closed.Load() {
			w.read(s, m)
		}
		if w.writes >= groupWrites {
			w.rest()
		}
		w.orders.slots[i] = nil
	}
	for i, r := range w.orders.heard {
		w.hear(r)
		w.orders.heard[i] = nil
	}
	for i, r := range w.orders.closing {
		w.dismiss(r)
		w.orders.closing[i] = nil
	}
}

// read does what the mail of a slot asks.
func (w *writer) read(s *Slot, m mail) {
	if m.selected {
		w.selectSource(s, m.selection)
	}
	if !m.reportedAt.IsZero() {
		s.reportBlock(&m.block, m.reportedAt)
	}
	if m.keyFrames > 0 {
		w.keyFrameAsked(s, m.keyFrames)
	}
	if len(m.nacked) > 0 {
		w.retransmit(s, m.nacked)
	}
}

// keyFrameAsked passes a receiver's wish for a key frame on to the publisher, if the slot carries a codec that has such. Every frame of the others
// decodes by itself; browsers ask all the same.
func (w *writer) keyFrameAsked(s *Slot, times int) {
	w.stats.counts[keyFramesAsked] += uint64(times)
	active := s.switcher.Active()
	track := w.engine.track(active.Track)
	if !active.NeedsKey || track == nil {
		w.stats.counts[keyFramesAbsorbed] += uint64(times)
		return
	}
	track.wantKeyFrame()
}
