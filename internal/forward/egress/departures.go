package egress

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/redundancy"
)

// maxExtension is the highest identifier of the one-byte form (RFC 8285 section 4.2).
const maxExtension = 14

// departures number the packets that are queued to one receiver, over all its slots, and match the receiver's reports
// with the packets. With transport-wide congestion control (draft-holmer-rmcat-transport-wide-cc-extensions-01) packets
// carry the number. With RFC 8888 reports identify packets by SSRC and sequence number. The writer owns the departures.
type departures struct {
	// extension is the negotiated identifier of the header extension, 0 if there is none or reports follow RFC 8888.
	extension uint8
	// header holds the extension. The headers of all slots point to this header: a header is read before the next one
	// is numbered.
	header rtp.Header
	// place is the number's position within the extension.
	place   []byte
	history *sender.History
	// counted are the history's statistics that the writer's counters already include.
	counted feedback.TransportHistoryStats
}

// kinds maps packet classes to the kinds of the history.
var kinds = [packetlog.Classes]feedback.PacketKind{
	packetlog.Media: feedback.Media, packetlog.Parity: feedback.Parity, packetlog.Audio: feedback.Audio,
	packetlog.Retransmission: feedback.Retransmission, packetlog.Probe: feedback.Probe,
}

// number sets the path's next number in the header of the packet that is queued next, or removes the extension if no
// numbers are negotiated. A packet that the outlet then refuses counts as lost on the network.
func (p *path) number(h *rtp.Header, payload int, kind packetlog.Class, now time.Time) {
	d := p.departures
	if d == nil || d.extension == 0 {
		h.Extension, h.ExtensionProfile, h.Extensions = false, 0, nil
		if d != nil && d.history.ByStream() {
			p.sender.Sent(h.SSRC, h.SequenceNumber, congestion.PacketOverhead+payload, kinds[kind], now)
		}
		return
	}
	number := p.sender.Sent(h.SSRC, h.SequenceNumber, congestion.PacketOverhead+payload, kinds[kind], now)
	binary.BigEndian.PutUint16(d.place, uint16(number))
	h.Extension, h.ExtensionProfile, h.Extensions = true, d.header.ExtensionProfile, d.header.Extensions
}

// agree sets the negotiated form of feedback: reports by SSRC and sequence number, or numbers in the extension with an
// identifier, or no feedback if the identifier is 0. Another identifier continues the numbers. Another form of reports
// begins a new history. agree reports whether estimation has started or stopped.
func (p *path) agree(extension uint8, byStream bool, now time.Time, at time.Duration) (changed bool) {
	if byStream || extension > maxExtension {
		extension = 0
	}
	d := p.departures
	known := d != nil && d.history.ByStream()
	switch {
	case d == nil && extension == 0 && !byStream, d != nil && d.extension == extension && known == byStream:
		return false
	case d == nil || known != byStream:
		changed = p.estimate(false, now, at)
		d = newDepartures(byStream)
		p.departures = d
	}
	d.extension, d.header, d.place = extension, rtp.Header{}, nil
	changed = p.estimate(extension != 0 || byStream, now, at) || changed
	if extension == 0 {
		return changed
	}
	if err := feedback.SetTransportSequence(&d.header, extension, 0); err != nil {
		panic("an empty header has no room for the transport-wide sequence number: " + err.Error())
	}
	d.place = d.header.GetExtension(extension)
	return changed
}

// number numbers the receiver's next packet. The negotiated form and the routes are read once per run.
func (r *Receiver) number(h *rtp.Header, payload int, kind packetlog.Class) {
	if r.run.packets == 0 {
		r.agree()
		r.followRoutes()
	}
	r.path.number(h, payload, kind, r.writer.now)
}

func newDepartures(byStream bool) *departures {
	if byStream {
		return &departures{history: sender.NewByStream()}
	}
	return &departures{history: sender.NewNumbered(uint16(rand.Uint32()))}
}

// countReports adds the report statistics since the last call to the counters.
func (p *path) countReports(counts *counters.Counts) {
	d := p.departures
	stats := d.history.Stats()
	counts[counters.TransportReports] += stats.Reports - d.counted.Reports
	counts[counters.TransportReceived] += stats.Received - d.counted.Received
	counts[counters.TransportLost] += stats.Lost - d.counted.Lost
	counts[counters.TransportUnmatched] += stats.Unmatched - d.counted.Unmatched
	counts[counters.TransportMarked] += stats.Marked - d.counted.Marked
	counts[counters.TransportFalseMarks] += stats.FalseMarks - d.counted.FalseMarks
	counts[counters.MalformedRTCP] += stats.Malformed - d.counted.Malformed
	d.counted = stats
}

// agree applies the feedback that the receiver's peers have negotiated. agree is called once per run.
func (r *Receiver) agree() {
	w := r.writer
	if r.path.agree(r.path.peer.TransportSequenceID(), r.path.peer.ReportsByStream(), w.now, w.at) {
		r.padding = padding{}
		w.reschedule(r)
		w.stepDue = min(w.stepDue, r.path.sender.StepDue())
	}
}

// readReports processes the queued reports of the receiver.
func (r *Receiver) readReports() {
	w := r.writer
	reports := w.inbox.openReports(r)
	for len(reports) > 0 {
		arrived := w.set.clock.Started().Add(time.Duration(binary.BigEndian.Uint64(reports)))
		report := reports[reportTime:]
		report = report[:rtcpSize(report)]
		reports = reports[reportTime+len(report):]
		if redundancy.IsReport(report) {
			r.readPathReport(report)
		} else if r.path.departures != nil && !r.path.routes.suspended(w.now) {
			w.results = r.path.sender.Report(report, arrived, w.now, w.results[:0])
		}
	}
	if r.path.departures == nil {
		return
	}
	if cap(w.results) > keptResults {
		w.results = nil
	}
	if r.path.estimation != nil && !r.closed.Load() {
		r.syncEstimator()
	}
	r.path.countReports(&w.stats.counts)
}
