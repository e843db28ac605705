package egress

import (
	"container/heap"
	"sync/atomic"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/forward/turn"
)

const (
	// groupWrites is after how many packets queued or sent a writer publishes its counts and does what is due by time,
	// between bursts.
	groupWrites = 32
	// HousekeepingInterval is how often a writer detaches slots, sends reports, and consults the senders of its
	// receivers.
	HousekeepingInterval = sender.LookInterval
)

// writer forwards to the receivers it owns. All but the inbox, the stack of signals and the atomics belongs to who has
// the turn, one goroutine at a time: the writer's own, or a reader that does its work.
type writer struct {
	set   *Set
	inbox inbox
	// signalled are the followers that have something to read.
	signalled signalStack
	turn      *turn.Turn
	// load is the number of slots of the receivers.
	load  atomic.Int64
	stats writerStats
	// gathered counts packets taken for bursts since the writer began to work.
	gathered int

	ready readyHeap
	// paced are the receivers for which packets wait, or a probe is under way.
	paced     pacedHeap
	followers map[*track.Track]*follower
	receivers []*Receiver
	reading
	outbox outbox
	burst  burst
	// lost is the scratch of track.Gap.Completes.
	lost []int
	// housekeeping is when the next round is due.
	housekeeping time.Time
	// stepDue is when the first of the receivers' estimators is to be stepped, since the engine's start.
	stepDue   time.Duration
	unsettled []*Slot
	reviewed  []*Slot
	touched   []*Slot
	reporting []*Receiver

	// results are those of the report being read.
	results []feedback.PacketResult
	orders  orders
	nacked  []rtcp.NackPair
	reports []rtcp.Packet
	wire    wire
}

func newWriter(s *Set, batch Batch) *writer {
	w := &writer{
		set:       s,
		followers: make(map[*track.Track]*follower),
		reading:   reading{clock: s.clock, now: s.clock.Now()},
		stepDue:   never,
	}
	w.outbox = outbox{time: &w.reading, batch: batch, residence: &w.stats.residence}
	w.turn = turn.New(w, s.clock, turn.NewTimer())
	return w
}

// run is the writer's goroutine. It begins with the turn.
func (w *writer) run() {
	w.turn.Run()
	w.letGo()
}

// Pending implements turn.Work.
func (w *writer) Pending() bool { return !w.signalled.empty() || w.inbox.pending.Load() }

// forever is for how long a writer without receivers has nothing to do.
const forever = time.Hour

// Idle implements turn.Work.
func (w *writer) Idle() (at, idle time.Duration) {
	if len(w.receivers) == 0 {
		return w.at, forever
	}
	idle = min(w.housekeeping.Sub(w.now), w.stepDue-w.at)
	if len(w.paced) > 0 {
		idle = min(idle, w.paced[0].tick-w.at)
	}
	return w.at, idle
}

// letGo gives back the packets at hand, and those that wait, and leaves the tracks.
func (w *writer) letGo() {
	for _, f := range w.followers {
		for _, a := range f.attachments {
			a.clear()
		}
		f.drop()
		f.track.Part(f)
	}
}

// Work implements turn.Work. It forwards until there is nothing to read and no tick due, and does what is asked and
// due, or until the end, with the burst at hand if there is more to do. Nothing stays queued. Audio goes first. What
// has waited for its tick goes before what has just come.
func (w *writer) Work(end time.Duration) (packets int, done bool) {
	w.gathered = 0
	w.read()
	for served := false; ; served = true {
		if w.inbox.pending.Load() {
			w.obey()
			w.outbox.flushAll()
		}
		w.collect()
		speaks := len(w.ready) > 0 && w.ready[0].track.Audio()
		r := w.ticking()
		done = r == nil && len(w.ready) == 0
		if done || served && w.at >= end {
			break
		}
		if r != nil && !speaks {
			w.tick(r)
		} else {
			w.gather()
			w.spread()
		}
		if w.outbox.writes >= groupWrites {
			w.rest()
		}
	}
	w.rest()
	return w.gathered, done
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
	for !f.hold() {
		f.signalled.Store(false)
		// A packet that came between looking and clearing the flag was not signalled.
		if f.position == f.track.Log().Head() || !f.signalled.CompareAndSwap(false, true) {
			return
		}
	}
	heap.Push(&w.ready, f)
}

// rest is made after each group of packets: it sends them, takes the time, publishes counts, and does what is due.
func (w *writer) rest() {
	w.outbox.dispatch()
	w.read()
	if len(w.reporting) > 0 {
		w.sendUrgentReports()
	}
	if w.at >= w.stepDue {
		w.stepEstimators()
	}
	if !w.now.Before(w.housekeeping) {
		w.housekeeping = w.now.Add(HousekeepingInterval)
		w.keepHouse()
	}
	w.publish()
}

// publish hands the counts since the last time to those who read them.
func (w *writer) publish() {
	w.outbox.writes = 0
	w.stats.publish()
}

// obey does what the inbox asks.
func (w *writer) obey() {
	w.orders = w.inbox.take(w.orders)
	for i, f := range w.orders.ended {
		f.close()
		w.orders.ended[i] = nil
	}
	for i, f := range w.orders.gapped {
		f.endIncomplete()
		w.orders.gapped[i] = nil
	}
	for i, s := range w.orders.slots {
		m := w.inbox.open(s, w.nacked)
		w.nacked = m.nacked
		if !s.receiver.closed.Load() {
			s.handle(m)
		}
		if w.outbox.writes >= groupWrites {
			w.rest()
		}
		w.orders.slots[i] = nil
	}
	for i, r := range w.orders.heard {
		r.readReports()
		w.orders.heard[i] = nil
	}
	for i, r := range w.orders.closing {
		w.dismiss(r)
		w.orders.closing[i] = nil
	}
}

// handle does what the mail of a slot asks.
func (s *Slot) handle(m mail) {
	if m.selected {
		s.apply(m.selection)
	}
	if !m.reportedAt.IsZero() {
		s.reportBlock(&m.block, m.reportedAt)
	}
	if m.keyFrames > 0 {
		s.keyFrameAsked(m.keyFrames)
	}
	if len(m.nacked) > 0 {
		s.retransmit(m.nacked)
	}
}

// keyFrameAsked passes a receiver's wish for a key frame on to the publisher, if the slot carries a codec that has
// such. Every frame of the others decodes by itself; browsers ask all the same.
func (s *Slot) keyFrameAsked(times int) {
	w := s.receiver.writer
	w.stats.counts[counters.KeyFramesAsked] += uint64(times)
	active := s.switcher.Active()
	track := w.set.tracks.Find(active.Track)
	if !active.NeedsKey || track == nil {
		w.stats.counts[counters.KeyFramesAbsorbed] += uint64(times)
		return
	}
	track.WantKeyFrame()
}

// keepHouse publishes what slots have sent, reviews slots that are changing, and sends the reports that are due.
func (w *writer) keepHouse() {
	for i, s := range w.touched {
		s.publish()
		w.touched[i] = nil
	}
	w.touched = w.touched[:0]
	w.unsettled, w.reviewed = w.reviewed[:0], w.unsettled
	for i, s := range w.reviewed {
		s.unsettled = false
		s.review()
		w.reviewed[i] = nil
	}
	w.countSlots()
	for _, r := range w.receivers {
		r.path.departed.mark(w.at)
		r.protect()
		r.handTimes()
		if r.path.estimation != nil {
			r.consult()
		} else {
			r.path.publish(w.at)
		}
		if !w.now.Before(r.reportDue) {
			r.reportDue = w.now.Add(w.set.cfg.ReportInterval)
			r.sendReports(everySlot)
		}
	}
}

// countSlots publishes how many slots carry something, or wait for it.
func (w *writer) countSlots() {
	var active, waiting int64
	for _, r := range w.receivers {
		for _, s := range r.slots.all() {
			switch {
			case s.waiting:
				waiting++
			case s.selection.track != nil && s.switcher.Active().Track != 0:
				active++
			}
		}
	}
	w.stats.active.Store(active)
	w.stats.waiting.Store(waiting)
}
