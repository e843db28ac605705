package ingress

import (
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
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
	// made is the number of reports made so far.
	made uint64
}

// newArrivals returns the state of a connection to which the server sends RTCP with an SSRC.
func newArrivals(ssrc uint32) arrivals {
	return arrivals{recorder: feedback.NewArrivalRecorder(feedback.DefaultConfig().Transport, ssrc)}
}

// received records a packet of any stream that arrived on the connection at a time. extension is the identifier of the
// header extension with numbers; byStream is set if the publisher expects reports by SSRC. received reports whether the
// due time has moved forward. Until a report is made that happens a few times: with the first packet, when the received
// bytes justify a shorter interval, with a packet that has ECN-CE, and when a report is full.
func (a *arrivals) received(ssrc uint32, packet []byte, extension uint8, byStream bool, codepoint ecn.Codepoint,
	at time.Time) (sooner bool) {
	a.recorder.ReportByStream(byStream)
	a.recorder.Received(ssrc, packet, extension, codepoint, at)
	next := a.recorder.Next()
	if next.IsZero() || !a.due.IsZero() && !next.Before(a.due) {
		return false
	}
	a.due = next
	return true
}

// reports makes the reports, each to be sent as one compound packet. The reports are valid until the next call. count
// is their number.
func (a *arrivals) reports(now time.Time) (compounds []rtcp.Packet, count uint64) {
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
	before := a.made
	a.made = a.recorder.Reports()
	a.due = a.recorder.Next()
	return compounds, a.made - before
}
