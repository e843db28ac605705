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
	"github.com/volsfu/volsfu/internal/redundancy"
	"github.com/volsfu/volsfu/pkg/switching"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// FrameOutlet is an Outlet that does not send RTP. It assembles the packets of its slot to frames and sends each frame
// completely or not at all, over a transport of its own.
type FrameOutlet interface {
	Outlet
	// Attach is called once, before the first packet. The outlet calls FrameDropped of the slot for each frame that it
	// drops.
	Attach(*Slot)
	// End releases the outlet's memory when the receiver is closed. Later packets are ignored.
	End()
}

// Slot is one outgoing RTP stream of one receiver (elsewhere: down track): one SSRC, continuous sequence numbers and
// monotonic timestamps, independent of the track that feeds it.
type Slot struct {
	receiver *Receiver
	outlet   Outlet
	// frameOutlet is the outlet if it is a FrameOutlet, otherwise nil.
	frameOutlet FrameOutlet
	kind        volumetric.Kind
	// requests holds the requests of other goroutines. The writer's inbox guards it.
	requests slotRequests

	packets, octets, framesSent atomic.Uint64
	retransmissions             atomic.Uint64
	fractionLost                atomic.Uint32
	jitter                      atomic.Uint32

	// The writer owns the fields below.
	switcher *switching.Switcher
	// frames records the times of the slot's frames.
	frames trace.Line[*Slot, *track.Track]
	header rtp.Header
	// held are the packets of all tracks that wait for their departure time, in the order in which the switcher sees
	// them.
	held pacing.Flow[heldPacket]
	// attachments are the tracks that reach the slot: active, pending, or with late packets.
	attachments []*attachment
	// selection is the last selection. waiting is set until it has taken effect.
	selection selection
	waiting   bool
	// unsettled is set while the slot is on the writer's list of slots to review.
	unsettled bool
	// touched is set while the slot is on the writer's list of slots whose counters are to be published.
	touched bool
	// passed is the share of parity that the receivers behind a relay need, in units of passedUnit.
	passed atomic.Uint32
	// unseen is set while the receiver does not see what the slot carries. Any goroutine may set it.
	unseen atomic.Bool
	sent   slotCounts
	// newest is the highest timestamp sent, valid if begun is set.
	newest uint32
	begun  bool
	// copied is the state of the slot's copies on a second path.
	copied redundancy.Stream
	// unbegun counts the frames that were reported as dropped before they began, since the last frame began.
	// overreported counts the reported frames that began after all, on another track.
	unbegun, overreported int
	// begunGroup is the group of the last frame that began, begunFrame the number of this frame.
	begunGroup uint64
	begunFrame int64
	// yielded are the latest consecutive frames that the active track has left to the pending track.
	yielded frameRun
	// settled is the newest frame whose outcome the receiver knows, if the frame has not begun.
	settled int64
	// off is set if the slot has been off since the last frame began.
	off bool
	// reporter makes sender reports, nil before the SSRC is known.
	reporter *feedback.SenderReporter
	// reportWanted requests a sender report as soon as possible. reportedGroup is the group of the last report.
	reportWanted  bool
	reportedGroup uint64
	// repeats are the latest retransmissions, nil before the first.
	repeats       *repeatTable
	retransmitter feedback.RTX
}

// slotCounts are the counters of packets that a slot has sent.
type slotCounts struct {
	packets, octets, frames, retransmissions uint64
}

// SlotStats are the counters of a slot, up to a tenth of a second old, and its receiver's last report (RFC 3550 section
// 6.4.1).
type SlotStats struct {
	Packets, Octets, Frames, Retransmissions uint64
	// FractionLost is 0 to 1. It includes losses of the publisher's link and is no sign of congestion.
	FractionLost float64
	Jitter       time.Duration
}

// selection is the track that a slot should carry. A nil track means nothing.
type selection struct {
	track     *track.Track
	group     uint64
	requested time.Time
	// origin is the Origin of the packets that a relay forwards.
	origin uint32
}

// attachment connects a slot to a track that its writer follows.
type attachment struct {
	writer   *writer
	slot     *Slot
	follower *follower
	// wireForm is the form in which the outlet's peer receives the track, valid if bound is set.
	wireForm
	bound bool
	// fed is set once a packet of the track has been forwarded to the slot.
	fed bool
	// until is the time at which the attachment ends, zero while the track is active or pending.
	until time.Time
	// newest is the highest sequence number that the slot was offered, reached the highest place that has left.
	newest, reached int64
	// leaving is the newest frame that has begun to leave, and left the time at which it began, since the engine's
	// start.
	leaving int64
	left    time.Duration
	// size is the size on the wire of the frame that arrives, in bytes, and formerSize the size of the frame before.
	// Both are measured on tracks without frame numbers.
	size, formerSize int
	// skipping is set if frames up to the frame with ordinal resumes were dropped and the switcher is not informed yet.
	skipping bool
	resumes  int64
	// dropping is set if packets of the frame dropped are not sent.
	dropping bool
	dropped  int64
	// refused are the latest consecutive frames that were dropped while another track fed the slot, and reason is the
	// reason for the last of them.
	refused frameRun
	reason  counters.Counter
	// omitted are the latest consecutive frames that were dropped while the track was pending.
	omitted frameRun
}

// noteRefused records that the frame that begins with a packet is dropped while another track feeds the slot.
func (a *attachment) noteRefused(p *packetlog.Packet, reason counters.Counter) {
	if p.Facts.Frame > a.slot.settled {
		a.refused.add(p.Facts.Frame)
		a.reason = reason
	}
}

// frameRun is a range of consecutive frames, from first to before end.
type frameRun struct{ first, end int64 }

// add adds a frame later than the frames before.
func (r *frameRun) add(frame int64) {
	if frame != r.end {
		r.first = frame
	}
	r.end = frame + 1
}

// less removes the last frame if it is the given one.
func (r *frameRun) less(frame int64) {
	if frame == r.end-1 {
		r.end = frame
	}
}

// within returns how many of the frames are among the given number of frames before one.
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
			// The first sequence number is random (RFC 3550 section 5.1), but in the lower half: a receiver that misses
			// the first packets before the number wraps would begin with the wrong rollover counter and could not
			// decrypt anything (RFC 3711 section 3.3.1).
			FirstSequence:  uint16(rand.Uint32N(1 << 15)),
			FirstTimestamp: rand.Uint32(),
			KeepTimestamps: r.relay,
			CutAfter:       r.writer.set.cfg.CutAfter,
		}),
	}
}

// FrameDropped reports that the slot's FrameOutlet has dropped a frame, because the receiver is sent more than its path
// carries.
func (s *Slot) FrameDropped() {
	r := s.receiver
	r.writer.set.control.Add(counters.DroppedBudget, 1)
	r.events.add(Event{Slot: s, DroppedFrames: 1, Dropped: DroppedBudget})
}

// Select sets the track that the slot carries from the next frame boundary on, or nothing if t is nil. Tracks of one
// group share frame numbers and RTP timestamps. requested is the time of the request, from which the delay until the
// first packet is counted. When the track begins to feed the slot, the receiver gets an Event. Selecting the track that
// feeds the slot cancels a pending change and also causes an Event. If the writer has not seen several selections yet,
// only the last takes effect.
func (s *Slot) Select(t *track.Track, group uint64, requested time.Time) {
	s.SelectFrom(t, group, 0, requested)
}

// SelectFrom is Select for a slot of NewRelay, which forwards packets of one origin only (packetlog.Packet.Origin). A
// track that another server feeds, or feeds until the publisher has moved, then does not return to that server. The
// origin 0 is the publisher's own connection. Slots of other receivers forward all packets.
func (s *Slot) SelectFrom(t *track.Track, group uint64, origin uint32, requested time.Time) {
	s.receiver.writer.inbox.selected(s, selection{track: t, group: group, requested: requested, origin: origin})
}

// SetSeen sets whether the receiver sees what the slot carries. The lowest quality of an unseen tile is not copied on
// the receiver's second path. Initially everything is seen. SetSeen is safe for any goroutine.
func (s *Slot) SetSeen(seen bool) { s.unseen.Store(!seen) }

// SSRC returns the negotiated SSRC of the slot, 0 before negotiation.
func (s *Slot) SSRC() uint32 { return s.outlet.SSRC() }

// Stats returns the slot's counters.
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

// clockRate returns the RTP clock rate of the slot in Hz.
func (s *Slot) clockRate() uint32 {
	if s.kind == volumetric.KindAudio {
		return 48000
	}
	return 90000
}

// publish publishes the slot's counters. The writer calls it.
func (s *Slot) publish() {
	s.touched = false
	s.packets.Store(s.sent.packets)
	s.octets.Store(s.sent.octets)
	s.framesSent.Store(s.sent.frames)
	s.retransmissions.Store(s.sent.retransmissions)
}

// reportSoon schedules the wanted sender reports of the receiver's slots for the next rest.
func (r *Receiver) reportSoon() {
	w := r.writer
	if !r.reporting {
		r.reporting = true
		w.reporting = append(w.reporting, r)
	}
}

// sendUrgentReports sends the sender reports that switches require at once.
func (w *writer) sendUrgentReports() {
	for i, r := range w.reporting {
		r.reporting = false
		r.sendReports(func(s *Slot) bool { return s.reportWanted })
		w.reporting[i] = nil
	}
	w.reporting = w.reporting[:0]
}

// everySlot selects reports about all slots.
func everySlot(*Slot) bool { return true }

// sendReports sends sender reports about the receiver's slots that are wanted, that carry a track, and for which the
// clock of the track's publisher is known.
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

// senderReport returns a report about a slot. It maps timestamps of the slot to the publisher's clock, using the
// publisher's latest report.
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

// reportBlock processes a report block of the receiver about a slot.
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
