package egress

import (
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
)

// reportSoon has the receiver's wanted reports sent at the next rest.
func (w *writer) reportSoon(r *Receiver) {
	if !r.reporting {
		r.reporting = true
		w.reporting = append(w.reporting, r)
	}
}

// sendUrgentReports sends the reports that new assignments want at once.
func (w *writer) sendUrgentReports() {
	for i, r := range w.reporting {
		r.reporting = false
		w.sendReports(r, func(s *Slot) bool { return s.reportWanted })
		w.reporting[i] = nil
	}
	w.reporting = w.reporting[:0]
}

// everySlot is for reports about all slots.
func everySlot(*Slot) bool { return true }

// sendReports sends sender reports about those of the receiver's slots that are wanted, carry a track, and know its publisher's clock.
func (w *writer) sendReports(r *Receiver, wanted func(*Slot) bool) {
	if r.closed.Load() {
		return
	}
	w.reports = w.reports[:0]
	for _, s := range r.all() {
		if !wanted(s) {
			continue
		}
		if report, ok := w.senderReport(s); ok {
			s.reportWanted = false
			w.reports = append(w.reports, report)
		}
	}
	for _, compound := range feedback.Compounds(w.reports) {
		if err := r.peer.WriteRTCP(compound); err != nil {
			w.stats.counts[counters.WriteErrors]++
		}
	}
	clear(w.reports)
}

// senderReport makes a report about a slot. It maps timestamps of the slot to the publisher's clock, by the publisher's own latest report.
func (w *writer) senderReport(s *Slot) (*rtcp.SenderReport, bool) {
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
		s.receiver.measured.Add(rtt)
	}
}
