package control

import (
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/client"
)

// Feedback is a form in which receivers report what has arrived.
type Feedback string

// The forms: transport-wide feedback, by a number that packets carry, and congestion control feedback (RFC 8888), by SSRC and sequence number.
const (
	FeedbackTransport Feedback = "transport"
	FeedbackCCFB      Feedback = "ccfb"
)

// client is what the SDK calls the form.
func (f Feedback) client() client.Feedback {
	if f == FeedbackCCFB {
		return client.FeedbackCCFB
	}
	return client.FeedbackTransportCC
}

// isReport tells whether a packet is a report of arrivals, in either form.
func isReport(packet []byte) bool {
	return feedback.IsTransportFeedback(packet) || feedback.IsCongestionReport(packet)
}

// arrivals are what a receiver reports. One of both is nil.
type arrivals struct {
	transport *feedback.TransportRecorder
	streams   *feedback.CongestionRecorder
}

func newArrivals(form Feedback) arrivals {
	cfg := feedback.DefaultConfig().Transport
	if form == FeedbackCCFB {
		return arrivals{streams: feedback.NewCongestionRecorder(cfg, reporter)}
	}
	return arrivals{transport: feedback.NewTransportRecorder(cfg)}
}

// The SSRCs of who reports and, where reports name one, of what they are about. Nothing goes by them.
const reporter, reported = 1, 2

// received takes a packet that has arrived.
func (a *arrivals) received(h *header, size int, now time.Duration) {
	if a.streams != nil {
		a.streams.Received(h.ssrc(), h.number, size, feedback.NotECT, at(now))
		return
	}
	a.transport.Received(h.number, size, at(now))
}

// next is when a report is due, never while there is nothing to report.
func (a *arrivals) next() time.Duration {
	if a.streams != nil {
		return due(a.streams.Next())
	}
	return due(a.transport.Next())
}

// report makes one report if one is due. It is to be called until it makes none.
func (a *arrivals) report(now time.Duration) []byte {
	if a.streams != nil {
		return a.streams.AppendReports(nil, at(now))
	}
	return a.transport.AppendReports(nil, reporter, reported, at(now))
}
