package egress

import (
	"container/heap"
	"sync/atomic"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/forward/turn"
)

const (
	// groupWrites is after how many packets queued or sent a writer publishes its counts and does what is due by time, between bursts.
	groupWrites = 32
	// HousekeepingInterval is how often a writer detaches slots, sends reports, and consults the senders of its receivers.
	HousekeepingInterval = sender.LookInterval
)

// writer forwards to the receivers it owns. All but the inbox, the stack of signals and the atomics belongs to who has the turn, one goroutine at a time: the
// writer's own, or a reader that does its work.
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
	// now is the last reading of the clock, not much more than a run of packets old; at is the same since the engine's start.
	now time.Time
	at  time.Duration
	// writes counts packets queued, and packets sent, since then.
	writes int
	burst  burst
	// unsent are the receivers that have something queued. batch holds what their peers leave to be sent together.
	// arrived has one entry for each packet that is queued and not sent: when it came, or was intended to leave if
	// that is later, in nanoseconds since the engine's start.
	unsent  []*Receiver
	batch   Batch
	arrived []int64
	// lost is the scratch of frameGap.completes.
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
	// disguised is the payload being disguised, repair and repairHeader are the retransmission being written.
	disguised    [packetlog.MaxPayload + disguiseSize]byte
	repair       [packetlog.MaxPayload + disguiseSize + 2]byte
	repairHeader rtp.Header
}

func newWriter(s *Set, batch Batch) *writer {
	w := &writer{
		set:       s,
		batch:     batch,
		followers: make(map[*track.Track]*follower),
		now:       s.clock.Now(),
		stepDue:   never,
	}
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
			w.clear(a)
		}
		f.drop()
		f.track.Part(f)
	}
}

// Work implements turn.Work. It forwards until there is nothing to read and no tick due, and does what is asked and due, or
// until the end, with the burst at hand if there is more to do. Nothing stays queued. Audio goes first. What has waited for
// its tick goes before what has just come.
func (w *writer) Work(end time.Duration) (packets int, done bool) {
	w.gathered = 0
	w.readClock()
	for served := false; ; served = true {
		if w.inbox.pending.Load() {
			w.obey()
			w.flushAll()
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
		if w.writes >= groupWrites {
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
	for !w.hold(f) {
		f.signalled.Store(false)
		// A packet that came between looking and clearing the flag was not signalled.
		if f.position == f.track.Log().Head() || !f.signalled.CompareAndSwap(false, true) {
			return
		}
	}
	heap.Push(&w.ready, f)
}

// readClock takes the time for what follows.
func (w *writer) readClock() {
	w.now = w.set.clock.Now()
	w.at = w.now.Sub(w.set.clock.Started())
}

// rest is made after each group of packets: it sends them, takes the time, publishes counts, and does what is due.
func (w *writer) rest() {
	w.dispatch()
	w.readClock()
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
	for i, f := range w.orders.gapped {
		w.endIncomplete(f)
		w.orders.gapped[i] = nil
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
		w.readReports(r)
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
	w.stats.counts[counters.KeyFramesAsked] += uint64(times)
	active := s.switcher.Active()
	track := w.set.tracks.Find(active.Track)
	if !active.NeedsKey || track == nil {
		w.stats.counts[counters.KeyFramesAbsorbed] += uint64(times)
		return
	}
	track.WantKeyFrame()
}
