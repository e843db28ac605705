package ingress

import (
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/transport"
)

// arrivals records the arrivals of the packets of a publisher's connection, for reports in the negotiated form:
// transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01) or RFC 8888. The ingress's mutex guards
// it.
type arrivals struct {
	recorder *feedback.ArrivalRecorder
	// due is the time of the next report, zero while there is nothing to report.
	due time.Time
	// compounds are the bytes of the last reports, which the goroutine sends.
	compounds []byte
	// reported is the number of reports that are counted in the statistics.
	reported uint64
}

// newArrivals returns the state of a connection to which the server sends RTCP with an SSRC.
func newArrivals(ssrc uint32) arrivals {
	return arrivals{recorder: feedback.NewArrivalRecorder(feedback.DefaultConfig().Transport, ssrc)}
}

// arrived records a packet of any stream, if the peers have negotiated reports. Until a report is made its due time
// moves forward a few times: with the first packet, when the received bytes justify a shorter interval, with a packet
// that has ECN-CE, and when a report is full. Each move wakes the goroutine.
func (i *Ingress) arrived(ssrc uint32, packet []byte, info *transport.PacketInfo) {
	extension, byStream := i.peer.TransportSequenceID(), i.peer.AcceptsReportsByStream()
	if extension == 0 && !byStream {
		return
	}
	a := &i.arrivals
	a.recorder.ReportByStream(byStream)
	codepoint := i.paths.codepoints.Reported(info.Path, info.ECN)
	a.recorder.Received(ssrc, packet, extension, codepoint, info.Arrived())
	if next := a.recorder.Next(); !next.IsZero() && (a.due.IsZero() || next.Before(a.due)) {
		a.due = next
		i.wake()
	}
}

// arrivalReports returns the due reports, each to be sent as one compound packet, and the time of the next report. The
// reports are valid until the next call.
func (i *Ingress) arrivalReports(now time.Time) (compounds []rtcp.Packet, next time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	a := &i.arrivals
	if a.due.IsZero() || now.Before(a.due) || !i.begin() {
		return nil, a.due
	}
	compounds = i.arrivalsDue(now)
	i.end()
	return compounds, a.due
}

// arrivalsDue makes the reports. The caller holds the mutex.
func (i *Ingress) arrivalsDue(now time.Time) (compounds []rtcp.Packet) {
	a := &i.arrivals
	a.compounds = a.compounds[:0]
	for {
		begin := len(a.compounds)
		a.compounds = a.recorder.AppendReports(a.compounds, now)
		if len(a.compounds) == begin {
			break
		}
		compound := rtcp.RawPacket(a.compounds[begin:])
		compounds = append(compounds, &compound)
	}
	reports := a.recorder.Reports()
	i.stats.Add(counters.TransportReportsSent, reports-a.reported)
	a.reported = reports
	a.due = a.recorder.Next()
	return compounds
}
