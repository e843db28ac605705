package egress

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/trace"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/switching"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// FrameOutlet is an Outlet whose frames do not travel as RTP: it assembles the packets of its slot to frames and
// sends each frame whole, or not at all, by a transport of its own.
type FrameOutlet interface {
	Outlet
	// Attach is called once, before the first packet. For each frame that the outlet leaves out it calls FrameDropped
	// of the slot.
	Attach(*Slot)
	// End releases what the outlet holds. Packets that come later are ignored. The receiver is closed.
	End()
}

// Slot is one outgoing RTP stream of one receiver: one SSRC, continuous sequence numbers and monotonic timestamps,
// whatever track feeds it.
type Slot struct {
	receiver *Receiver
	outlet   Outlet
	// frameOutlet is the outlet if its frames do not travel as RTP, else nil.
	frameOutlet FrameOutlet
	kind        volumetric.Kind
	// mail is what other goroutines ask for; the writer's inbox guards it.
	mail mail

	packets, octets, framesSent atomic.Uint64
	retransmissions             atomic.Uint64
	fractionLost                atomic.Uint32
	jitter                      atomic.Uint32

	// What follows is the writer's.
	switcher *switching.Switcher
	// frames notes the times of the slot's frames.
	frames trace.Line[*Slot, *track.Track]
	header rtp.Header
	// held are packets that wait for their time, of whatever track, in the order in which the switcher is to see them.
	held pacing.Flow[heldPacket]
	// attachments are the tracks that reach the slot: active, pending, or owing late packets.
	attachments []*attachment
	// selection is the last one that was made; waiting is set until it has taken effect.
	selection selection
	waiting   bool
	// unsettled is set while the slot is on the writer's list of slots to review.
	unsettled bool
	// touched is set while the slot is on the writer's list of slots whose counts are to be published.
	touched bool
	sent    slotCounts
	// newest is the highest timestamp sent, once begun is set.
	newest uint32
	begun  bool
	// unbegun counts the frames that the receiver was told of as dropped before they had begun, since the last one
	// began; overtold are those that began after all, by another track.
	unbegun, overtold int
	// settled is the newest frame of which the receiver knows what became of it, if it has not begun.
	settled int64
	// off says that the slot has been off since the last frame began.
	off bool
	// reporter makes sender reports, nil before the SSRC is known.
	reporter *feedback.SenderReporter
	// reportWanted asks for a sender report at the next occasion; reportedGroup is the group that the last one was
	// about.
	reportWanted  bool
	reportedGroup uint64
	// repeats are the latest retransmissions, nil before the first.
	repeats       *repeatTable
	retransmitter feedback.RTX
}

// slotCounts are what a slot has sent.
type slotCounts struct {
	packets, octets, frames, retransmissions uint64
}

// SlotStats are what a slot has sent, up to a tenth of a second ago, and what its receiver last reported (RFC 3550
// section 6.4.1).
type SlotStats struct {
	Packets, Octets, Frames, Retransmissions uint64
	// FractionLost is 0 to 1, and counts what the publisher's link lost, too: it is no sign of congestion.
	FractionLost float64
	Jitter       time.Duration
}

// selection is what a slot should carry; a nil track is nothing.
type selection struct {
	track     *track.Track
	group     uint64
	requested time.Time
}

// attachment is a slot on a track that its writer follows.
type attachment struct {
	writer   *writer
	slot     *Slot
	follower *follower
	// wireForm is how the outlet's peer takes the track, once bound is set.
	wireForm
	bound bool
	// fed is set once a packet of the track has been forwarded to the slot.
	fed bool
	// until is when the attachment ends, zero while the track is active or pending.
	until time.Time
	// newest is the highest sequence number that the slot was offered, reached the highest place that has left.
	newest, reached int64
	// leaving is the newest frame that has begun to leave, and left is when it did, since the engine's start.
	leaving int64
	left    time.Duration
	// skipping says that frames were left out, up to the one with the ordinal resumes, of which the switcher has not
	// been told.
	skipping bool
	resumes  int64
	// dropping says that what comes of the frame dropped is not sent.
	dropping bool
	dropped  int64
	// overdue are the latest consecutive frames that waited for too long, or could not be completed, while another
	// track fed the slot.
	overdue frameRun
}

// overdueAt notes that the frame that begins with a packet is left out while another track feeds the slot.
func (a *attachment) overdueAt(p *packetlog.Packet) {
	if p.Facts.Frame > a.slot.settled {
		a.overdue.add(p.Facts.Frame)
	}
}

// frameRun is consecutive frames, from first to before end.
type frameRun struct{ first, end int64 }

// add takes one more frame, later than those before.
func (r *frameRun) add(frame int64) {
	if frame != r.end {
		r.first = frame
	}
	r.end = frame + 1
}

// less takes back the last one, if that is the given one.
func (r *frameRun) less(frame int64) {
	if frame == r.end-1 {
		r.end = frame
	}
}

// within counts those that are among so many frames before one.
func (r *frameRun) within(frames int, before int64) int {
	return int(max(min(r.end, before)-max(r.first, before-int64(frames)), 0))
}

func newSlot(r *Receiver, o Outlet, kind volumetric.Kind) *Slot {
	clockRate := uint32(90000)
	if kind == volumetric.KindAudio {
		clockRate = 48000
	}
	frames, _ := o.(FrameOutlet)
	return &Slot{
		receiver:    r,
		outlet:      o,
		frameOutlet: frames,
		kind:        kind,
		header:      rtp.Header{Version: 2},
		switcher: switching.New(switching.Config{
			ClockRate: clockRate,
			// Random (RFC 3550 section 5.1), but in the lower half: a receiver that misses the first packets before the
			// number wraps would begin with the wrong rollover counter, and decrypt nothing (RFC 3711 section 3.3.1).
			FirstSequence:  uint16(rand.Uint32N(1 << 15)),
			FirstTimestamp: rand.Uint32(),
			CutAfter:       r.writer.set.cfg.CutAfter,
		}),
	}
}

// FrameDropped reports that the slot's FrameOutlet has left out a frame, because the receiver is sent more than its
// path takes.
func (s *Slot) FrameDropped() {
	r := s.receiver
	r.writer.set.control.Add(counters.DroppedBudget, 1)
	r.events.add(Event{Slot: s, DroppedFrames: 1, Dropped: DroppedBudget})
}

// Select says what the slot carries from the next frame boundary on: a track, or nothing if it is nil. Tracks of one
// group share frame numbers and RTP timestamps. requested is when the change was asked for; the delay until the first
// packet is counted from there. When the track begins to feed the slot, the receiver gets an Event; selecting what
// feeds it already cancels a pending change, without one. Only the last of several selections that the writer has not
// seen yet is made.
func (s *Slot) Select(t *track.Track, group uint64, requested time.Time) {
	s.receiver.writer.inbox.selected(s, selection{track: t, group: group, requested: requested})
}

// SSRC is the slot's SSRC, 0 before it is negotiated.
func (s *Slot) SSRC() uint32 { return s.outlet.SSRC() }

// Stats are the slot's counts.
func (s *Slot) Stats() SlotStats {
	return SlotStats{
		Packets:         s.packets.Load(),
		Octets:          s.octets.Load(),
		Frames:          s.framesSent.Load(),
		Retransmissions: s.retransmissions.Load(),
		FractionLost:    float64(s.fractionLost.Load()) / 256,
		Jitter:          time.Duration(s.jitter.Load()) * time.Second / time.Duration(s.clockRate()),
	}
}

// clockRate is the RTP clock of the slot in Hz.
func (s *Slot) clockRate() uint32 {
	if s.kind == volumetric.KindAudio {
		return 48000
	}
	return 90000
}

// publish makes what the slot has sent visible. The writer calls it.
func (s *Slot) publish() {
	s.touched = false
	s.packets.Store(s.sent.packets)
	s.octets.Store(s.sent.octets)
	s.framesSent.Store(s.sent.frames)
	s.retransmissions.Store(s.sent.retransmissions)
}

// reportSoon has the reports that the receiver's slots want sent at the next rest.
func (r *Receiver) reportSoon() {
	w := r.writer
	if !r.reporting {
		r.reporting = true
		w.reporting = append(w.reporting, r)
	}
}

// sendUrgentReports sends the reports that new assignments want at once.
func (w *writer) sendUrgentReports() {
	for i, r := range w.reporting {
		r.reporting = false
		r.sendReports(func(s *Slot) bool { return s.reportWanted })
		w.reporting[i] = nil
	}
	w.reporting = w.reporting[:0]
}

// everySlot is for reports about all slots.
func everySlot(*Slot) bool { return true }

// sendReports sends sender reports about those of the receiver's slots that are wanted, carry a track, and know its
// publisher's clock.
func (r *Receiver) sendReports(wanted func(*Slot) bool) {
	if r.closed.Load() {
		return
	}
	w := r.writer
	w.reports = w.reports[:0]
	for _, s := range r.slots.all() {
		if !wanted(s) {
			continue
		}
		if report, ok := s.senderReport(); ok {
			s.reportWanted = false
			w.reports = append(w.reports, report)
		}
	}
	for _, compound := range feedback.Compounds(w.reports) {
		if err := r.path.peer.WriteRTCP(compound); err != nil {
			w.stats.counts[counters.WriteErrors]++
		}
	}
	clear(w.reports)
}

// senderReport makes a report about a slot. It maps timestamps of the slot to the publisher's clock, by the publisher's
// own latest report.
func (s *Slot) senderReport() (*rtcp.SenderReport, bool) {
	w := s.receiver.writer
	active := s.switcher.Active()
	track := w.set.tracks.Find(active.Track)
	if track == nil || s.reporter == nil {
		return nil, false
	}
	m := track.Mapping()
	if m == nil {
		return nil, false
	}
	timestamp, ok := s.switcher.MapTimestamp(active.Track, m.Timestamp)
	if !ok {
		return nil, false
	}
	s.reportedGroup = active.Group
	s.reporter.Map(timestamp, m.Capture, m.Arrived)
	return s.reporter.Report(w.now)
}

// reportBlock takes what the receiver says about a slot.
func (s *Slot) reportBlock(block *rtcp.ReceptionReport, now time.Time) {
	s.fractionLost.Store(uint32(block.FractionLost))
	s.jitter.Store(block.Jitter)
	if s.reporter == nil {
		return
	}
	if rtt, ok := s.reporter.RoundTrip(block, now); ok {
		s.receiver.path.measured.Add(rtt)
	}
}
