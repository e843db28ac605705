package egress

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/rtcp"
)

// inbox is what other goroutines ask a writer to do, taken as a whole each time the writer looks. It is bounded by the
// number of slots, receivers and followers: what is asked twice of one of them is kept once, so that a writer that is
// held up collects no backlog.
type inbox struct {
	pending atomic.Bool

	mu     sync.Mutex
	orders orders
}

// orders are what an inbox holds.
type orders struct {
	// slots have mail.
	slots []*Slot
	// closing are receivers that are closed.
	closing []*Receiver
	// ended are followers whose track is closed.
	ended []*follower
	// gapped are followers of whose track packets will not come any more.
	gapped []*follower
	// heard are receivers that have reported arrivals.
	heard []*Receiver
}

// mail is what is asked of one slot.
type mail struct {
	queued    bool
	selected  bool
	selection selection
	// nacked are the numbers that the receiver asks for, in the pairs of RFC 4585 section 6.2.1.
	nacked []rtcp.NackPair
	// keyFrames counts requests for a key frame (PLI and FIR).
	keyFrames int
	// block is the latest report block about the slot, which came at reportedAt, zero if none has come.
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

// nacked takes as many pairs as the limit of a slot leaves room for, and what one receiver may have looked up, and
// returns how many it did not take.
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

// reported takes a report block about the slot.
func (b *inbox) reported(s *Slot, block rtcp.ReceptionReport, now time.Time) {
	defer s.receiver.writer.turn.Wake()
	b.mu.Lock()
	defer b.mu.Unlock()
	s.mail.block, s.mail.reportedAt = block, now
	b.queue(s)
}

// queue notes that a slot has mail. The caller holds the mutex.
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

// gapped has the slots told of what will not come of the follower's track.
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

// take gives what has been asked and leaves room for more in the given lists.
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

// open gives a slot's mail and empties it. The pairs are copied to room, whose memory is used again.
func (b *inbox) open(s *Slot, room []rtcp.NackPair) mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := s.mail
	m.nacked = append(room[:0], s.mail.nacked...)
	s.receiver.asked -= len(m.nacked)
	s.mail = mail{nacked: s.mail.nacked[:0]}
	return m
}

// heard takes a report of a receiver that came at a time since the engine's start. It returns how many reports are
// dropped for want of room.
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

// openReports gives the reports that wait of a receiver, until the next call.
func (b *inbox) openReports(r *Receiver) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return r.reports.open()
}
