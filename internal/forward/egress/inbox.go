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

	mu     sync.Mutex
	orders orders
}

// orders are the contents of an inbox.
type orders struct {
	// slots are the slots with requests.
	slots []*Slot
	// closing are the closed receivers.
	closing []*Receiver
	// ended are the followers of closed tracks.
	ended []*follower
	// gapped are the followers of tracks with new gaps.
	gapped []*follower
	// heard are the receivers with new reports of arrivals.
	heard []*Receiver
}

// mail holds the requests to one slot.
type mail struct {
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
	s.mail.selected, s.mail.selection = true, sel
	b.queue(s)
}

// nacked stores the pairs up to the limit of a slot and the lookup limit of the receiver, and returns the number of
// refused pairs.
func (b *inbox) nacked(s *Slot, pairs []rtcp.NackPair, limit int) int {
	r := s.receiver
	defer r.writer.turn.Wake()
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := min(len(pairs), max(min(limit-len(s.mail.nacked), r.repairs.most*lookupsPerRepair-r.asked), 0))
	r.asked += taken
	s.mail.nacked = append(s.mail.nacked, pairs[:taken]...)
	b.queue(s)
	return len(pairs) - taken
}

func (b *inbox) keyFrameWanted(s *Slot) {
	defer s.receiver.writer.turn.Wake()
	b.mu.Lock()
	defer b.mu.Unlock()
	s.mail.keyFrames++
	b.queue(s)
}

// reported stores a report block about the slot.
func (b *inbox) reported(s *Slot, block rtcp.ReceptionReport, now time.Time) {
	defer s.receiver.writer.turn.Wake()
	b.mu.Lock()
	defer b.mu.Unlock()
	s.mail.block, s.mail.reportedAt = block, now
	b.queue(s)
}

// queue records that a slot has requests. The caller holds the mutex.
func (b *inbox) queue(s *Slot) {
	if !s.mail.queued {
		s.mail.queued = true
		b.orders.slots = append(b.orders.slots, s)
	}
	b.pending.Store(true)
}

func (b *inbox) close(r *Receiver) {
	defer r.writer.turn.Wake()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.orders.closing = append(b.orders.closing, r)
	b.pending.Store(true)
}

func (b *inbox) end(f *follower) {
	defer f.writer.turn.Wake()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.orders.ended = append(b.orders.ended, f)
	b.pending.Store(true)
}

// gapped requests that the slots are informed of new gaps of the follower's track.
func (b *inbox) gapped(f *follower) {
	defer f.writer.turn.Wake()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !f.gapped {
		f.gapped = true
		b.orders.gapped = append(b.orders.gapped, f)
	}
	b.pending.Store(true)
}

// take removes and returns the requests. The inbox reuses the memory of room.
func (b *inbox) take(room orders) orders {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.orders
	b.orders = orders{slots: room.slots[:0], closing: room.closing[:0], ended: room.ended[:0], gapped: room.gapped[:0],
		heard: room.heard[:0]}
	for _, f := range taken.gapped {
		f.gapped = false
	}
	b.pending.Store(false)
	return taken
}

// open removes and returns the requests to a slot. The pairs are copied to room, whose memory is reused.
func (b *inbox) open(s *Slot, room []rtcp.NackPair) mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := s.mail
	m.nacked = append(room[:0], s.mail.nacked...)
	s.receiver.asked -= len(m.nacked)
	s.mail = mail{nacked: s.mail.nacked[:0]}
	return m
}

// heard stores a receiver's report of arrivals. at is the arrival time since the engine's start. heard returns the
// number of reports dropped because the box was full.
func (b *inbox) heard(r *Receiver, report []byte, at int64) (dropped int) {
	defer r.writer.turn.Wake()
	b.mu.Lock()
	defer b.mu.Unlock()
	dropped, first := r.reports.add(report, at)
	if first {
		b.orders.heard = append(b.orders.heard, r)
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
