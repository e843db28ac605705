package ingress

import (
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
)

// arrivals records the arrival times of packets that a publisher numbers over its whole connection, for transport-wide
// feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01). The ingress's mutex guards it.
type arrivals struct {
	recorder *feedback.TransportRecorder
	// ssrc is the SSRC of the last packet: senders look for one of their own SSRCs in reports.
	ssrc uint32
	// due is the time of the next report, zero while there is nothing to report.
	due time.Time
	// compounds are the bytes of the last reports, which the goroutine sends.
	compounds []byte
	// reported is the number of reports that are counted in the statistics.
	reported uint64
}

func newArrivals() arrivals {
	return arrivals{recorder: feedback.NewTransportRecorder(feedback.DefaultConfig().Transport)}
}

// arrived records a packet of any stream, if it has a transport-wide number. Until a report is made its due time moves
// forward at most three times: with the first packet, and when the received bytes justify a shorter interval. Each move
// wakes the goroutine.
func (i *Ingress) arrived(ssrc uint32, packet []byte, now time.Time) {
	extension := i.peer.TransportSequenceID()
	if extension == 0 {
		return
	}
	number, ok := feedback.TransportSequence(packet, extension)
	if !ok {
		return
	}
	a := &i.arrivals
	a.ssrc = ssrc
	a.recorder.Received(number, len(packet), now)
	if next := a.recorder.Next(); a.due.IsZero() || next.Before(a.due) {
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
		a.compounds = a.recorder.AppendReports(a.compounds, i.ssrc, a.ssrc, now)
		if len(a.compounds) == begin {
			break
		}
		compound := rtcp.RawPacket(a.compounds[begin:])
		compounds = append(compounds, &compound)
	}
	reports := a.recorder.Stats().Reports
	i.stats.Add(counters.TransportReportsSent, reports-a.reported)
	a.reported = reports
	a.due = a.recorder.Next()
	return compounds
}
