package egress

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/rtcp"
)

// inbox collects the requests of other goroutines to a writer, which takes all of them at a time. It is bounded by the
// number of slots, receivers and followers: repeated requests for one of them are stored once, so that a delayed writer
// collects no backlog.
type inbox struct {
	pending atomic.Bool

	mu       sync.Mutex
	requests requests
}

// requests are the contents of an inbox.
type requests struct {
	// slots are the slots with requests.
	slots []*Slot
	// closing are the closed receivers.
	closing []*Receiver
	// ended are the followers of closed tracks.
	ended []*follower
	// gapped are the followers of tracks with new gaps.
	gapped []*follower
	// reporting are the receivers with new reports of arrivals.
	reporting []*Receiver
}

// slotRequests are the requests to one slot.
type slotRequests struct {
	queued    bool
	selected  bool
	selection selection
	// nacked are the sequence numbers that the receiver requests, in the pairs of RFC 4585 section 6.2.1.
	nacked []rtcp.NackPair
	// keyFrames counts requests for a key frame (PLI and FIR).
	keyFrames int
	// block is the latest report block about the slot. It arrived at reportedAt, which is zero if there is none.
	block      rtcp.ReceptionReport
	reportedAt time.Time
}

func (b *inbox) selected(s *Slot, sel selection) {
	defer s.receiver.writer.turn.Wake()
	b.mu.Lock()
	defer b.mu.Unlock()
	s.requests.selected, s.requests.selection = true, sel
	b.queue(s)
}

// nacked stores the pairs up to the limit of a slot and the lookup limit of the receiver, and returns the number of
// refused pairs.
func (b *inbox) nacked(s *Slot, pairs []rtcp.NackPair, limit int) int {
	r := s.receiver
	defer r.writer.turn.Wake()
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := min(len(pairs), max(min(limit-len(s.requests.nacked), r.repairs.most*lookupsPerRepair-r.asked), 0))
	r.asked += taken
	s.requests.nacked = append(s.requests.nacked, pairs[:taken]...)
	b.queue(s)
	return len(pairs) - taken
}

func (b *inbox) keyFrameWanted(s *Slot) {
	defer s.receiver.writer.turn.Wake()
	b.mu.Lock()
	defer b.mu.Unlock()
	s.requests.keyFrames++
	b.queue(s)
}

// reported stores a report block about the slot.
func (b *inbox) reported(s *Slot, block rtcp.ReceptionReport, now time.Time) {
	defer s.receiver.writer.turn.WakeSoon()
	b.mu.Lock()
	defer b.mu.Unlock()
	s.requests.block, s.requests.reportedAt = block, now
	b.queue(s)
}

// queue records that a slot has requests. The caller holds the mutex.
func (b *inbox) queue(s *Slot) {
	if !s.requests.queued {
		s.requests.queued = true
		b.requests.slots = append(b.requests.slots, s)
	}
	b.pending.Store(true)
}

func (b *inbox) close(r *Receiver) {
	defer r.writer.turn.Wake()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests.closing = append(b.requests.closing, r)
	b.pending.Store(true)
}

func (b *inbox) end(f *follower) {
	defer f.writer.turn.Wake()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests.ended = append(b.requests.ended, f)
	b.pending.Store(true)
}

// gapped requests that the slots are informed of new gaps of the follower's track.
func (b *inbox) gapped(f *follower) {
	defer f.writer.turn.Wake()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !f.gapped {
		f.gapped = true
		b.requests.gapped = append(b.requests.gapped, f)
	}
	b.pending.Store(true)
}

// take removes and returns the requests. The inbox reuses the memory of room.
func (b *inbox) take(room requests) requests {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.requests
	b.requests = requests{slots: room.slots[:0], closing: room.closing[:0], ended: room.ended[:0],
		gapped: room.gapped[:0], reporting: room.reporting[:0]}
	for _, f := range taken.gapped {
		f.gapped = false
	}
	b.pending.Store(false)
	return taken
}

// open removes and returns the requests to a slot. The pairs are copied to room, whose memory is reused.
func (b *inbox) open(s *Slot, room []rtcp.NackPair) slotRequests {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := s.requests
	m.nacked = append(room[:0], s.requests.nacked...)
	s.receiver.asked -= len(m.nacked)
	s.requests = slotRequests{nacked: s.requests.nacked[:0]}
	return m
}

// onReport stores a receiver's report of arrivals. at is the arrival time since the engine's start. onReport returns
// the number of reports dropped because the box was full.
func (b *inbox) onReport(r *Receiver, report []byte, at int64) (dropped int) {
	defer r.writer.turn.WakeSoon()
	b.mu.Lock()
	defer b.mu.Unlock()
	dropped, first := r.reports.add(report, at)
	if first {
		b.requests.reporting = append(b.requests.reporting, r)
	}
	b.pending.Store(true)
	return dropped
}

// openReports removes and returns the stored reports of a receiver, valid until the next call.
func (b *inbox) openReports(r *Receiver) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return r.reports.open()
}
