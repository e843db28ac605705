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
	// groupWrites is the number of packets queued or sent after which a writer publishes its counters and does timed
	// work, between bursts.
	groupWrites = 32
	// HousekeepingInterval is the interval at which a writer detaches slots, sends reports, and consults the senders of
	// its receivers.
	HousekeepingInterval = sender.LookInterval
)

// writer forwards packets to the receivers that it owns. All state except the inbox, the stack of signals and the
// atomics belongs to the one goroutine that has the turn: the writer's own, or a reader that does its work.
type writer struct {
	set   *Set
	inbox inbox
	// signalled are the followers with packets to read.
	signalled signalStack
	turn      *turn.Turn
	// load is the number of receivers and their slots, see receiverLoad.
	load  atomic.Int64
	stats writerStats
	// gathered counts the packets taken for bursts since Work began.
	gathered int

	// spacing is shared by the senders of the receivers.
	spacing sender.Spacing

	ready readyHeap
	// paced are the receivers with waiting packets or an active probe.
	paced     pacedHeap
	followers map[*track.Track]*follower
	receivers []*Receiver
	reading
	outbox outbox
	burst  burst
	// lost is the scratch of track.Gap.Completes.
	lost []int
	// housekeeping is the time of the next housekeeping.
	housekeeping time.Time
	// stepDue is the time at which the first estimator of the receivers must be stepped, since the engine's start.
	stepDue   time.Duration
	unsettled []*Slot
	reviewed  []*Slot
	touched   []*Slot
	reporting []*Receiver

	// results are the results of the report being read.
	results  []feedback.PacketResult
	requests requests
	nacked   []rtcp.NackPair
	reports  []rtcp.Packet
	wire     wire
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
	w.release()
}

// Pending implements turn.Work.
func (w *writer) Pending() bool { return !w.signalled.empty() || w.inbox.pending.Load() }

// forever is the sleeping time of a writer without receivers.
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

// release releases next packets and waiting packets, and leaves the tracks.
func (w *writer) release() {
	for _, f := range w.followers {
		for _, a := range f.attachments {
			a.clear()
		}
		f.drop()
		f.track.Part(f)
	}
}

// Work implements turn.Work. It forwards packets, and handles requests and timed work, until there is nothing to read
// and no tick is due, or until end, with the current burst, if there is more to do. No packet stays queued on a peer.
// Audio goes first. Packets that have waited for their tick precede packets that have just arrived.
func (w *writer) Work(end time.Duration) (packets int, done bool) {
	w.gathered = 0
	w.read()
	for served := false; ; served = true {
		if w.inbox.pending.Load() {
			w.drainInbox()
			w.outbox.flushAll()
		}
		w.collect()
		audioFirst := len(w.ready) > 0 && w.ready[0].track.Audio()
		r := w.ticking()
		done = r == nil && len(w.ready) == 0
		if done || served && w.at >= end {
			break
		}
		if r != nil && !audioFirst {
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

// collect makes the signalled followers ready.
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

// resume makes a follower ready if it has a packet to read. Otherwise the follower waits until its reader signals
// again.
func (w *writer) resume(f *follower) {
	for !f.hold() {
		f.signalled.Store(false)
		// A packet that arrived between the check and clearing the flag was not signalled.
		if f.position == f.track.Log().Head() || !f.signalled.CompareAndSwap(false, true) {
			return
		}
	}
	heap.Push(&w.ready, f)
}

// rest is called after each group of packets. It sends the packets, reads the clock, does timed work and publishes the
// counters.
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
		w.runHousekeeping()
	}
	w.publish()
}

// publish publishes the counters since the last call.
func (w *writer) publish() {
	w.outbox.writes = 0
	w.stats.publish()
}

// drainInbox handles the requests in the inbox.
func (w *writer) drainInbox() {
	w.requests = w.inbox.take(w.requests)
	for i, f := range w.requests.ended {
		f.close()
		w.requests.ended[i] = nil
	}
	for i, f := range w.requests.gapped {
		f.endIncomplete()
		w.requests.gapped[i] = nil
	}
	for i, s := range w.requests.slots {
		m := w.inbox.open(s, w.nacked)
		w.nacked = m.nacked
		if !s.receiver.closed.Load() {
			s.handle(m)
		}
		if w.outbox.writes >= groupWrites {
			w.rest()
		}
		w.requests.slots[i] = nil
	}
	for i, r := range w.requests.reporting {
		r.readReports()
		w.requests.reporting[i] = nil
	}
	for i, r := range w.requests.closing {
		w.removeReceiver(r)
		w.requests.closing[i] = nil
	}
	if len(w.requests.closing) > 0 {
		// A writer without receivers sleeps, so that no housekeeping would count.
		w.countSlots()
	}
}

// handle handles the requests to a slot.
func (s *Slot) handle(m slotRequests) {
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

// keyFrameAsked forwards key frame requests of a receiver to the publisher if the slot carries a codec with key frames.
// With other codecs every frame decodes independently, but browsers request key frames all the same.
func (s *Slot) keyFrameAsked(times int) {
	w := s.receiver.writer
	w.stats.counts[counters.KeyFramesAsked] += uint64(times)
	active := s.switcher.Active()
	track := w.set.tracks.Find(active.Track)
	if !active.NeedsKey || track == nil {
		w.stats.counts[counters.KeyFramesAbsorbed] += uint64(times)
		return
	}
	if c := s.receiver.path.reception.Load(); c != nil && c.settled(s.header.SSRC, w.at) {
		c.keyFrames += uint64(times)
	}
	track.WantKeyFrame()
}

// runHousekeeping publishes the counters of slots, reviews slots that are changing, and sends the reports that are due.
func (w *writer) runHousekeeping() {
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
			r.syncEstimator()
		} else {
			r.path.publish(w.at)
		}
		if !w.now.Before(r.reportDue) {
			r.reportDue = w.now.Add(w.set.cfg.ReportInterval)
			r.sendReports(everySlot)
		}
	}
}

// handTimes ends the final frames of the receiver, and hands over their times when it is time.
func (r *Receiver) handTimes() {
	w := r.writer
	if !r.traced() && !r.frames.Waits() {
		return
	}
	for _, s := range r.slots.all() {
		s.frames.Sweep(&r.frames, &w.stats.frames, w.at)
	}
	r.frames.Hand(&w.stats.frames, w.at)
}

// countSlots publishes the numbers of active and waiting slots.
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
