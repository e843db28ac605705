package feedback

import (
	"time"

	"github.com/pion/rtcp"
)

// referenceInterval is the minimum time between two replies to reference times. Browsers send one a second for each
// stream, and any of the replies gives the round trip.
const referenceInterval = 100 * time.Millisecond

// ReferenceTimes replies to the reference times of a receiver (RFC 3611 sections 4.4 and 4.5). A receiver that sends no
// media gets no reports about its packets, and learns the round-trip time from the replies. The zero value is ready.
type ReferenceTimes struct {
	replied time.Time
}

// Reply returns the reply to the reference time in a report, at most one every 100 ms. ok is false if the report has
// no reference time, or the last reply is too recent. The reply is to be sent at once: it states no delay.
func (t *ReferenceTimes) Reply(p *rtcp.ExtendedReport, sender uint32, now time.Time) (reply rtcp.Packet, ok bool) {
	for _, block := range p.Reports {
		reference, is := block.(*rtcp.ReceiverReferenceTimeReportBlock)
		if !is {
			continue
		}
		if !t.replied.IsZero() && now.Sub(t.replied) < referenceInterval {
			return nil, false
		}
		t.replied = now
		return &rtcp.ExtendedReport{SenderSSRC: sender, Reports: []rtcp.ReportBlock{&rtcp.DLRRReportBlock{
			Reports: []rtcp.DLRRReport{{SSRC: p.SenderSSRC, LastRR: uint32(reference.NTPTimestamp >> 16)}},
		}}}, true
	}
	return nil, false
}
