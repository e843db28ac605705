package control

import (
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/client"
)

// Feedback is the RTCP format in which receivers report arrivals.
type Feedback string

// The formats: transport-wide feedback, by the transport-wide sequence number in each packet, and congestion control
// feedback (RFC 8888), by SSRC and sequence number.
const (
	FeedbackTransport Feedback = "transport"
	FeedbackCCFB      Feedback = "ccfb"
)

// client returns the SDK's value of the format.
func (f Feedback) client() client.Feedback {
	if f == FeedbackCCFB {
		return client.FeedbackCCFB
	}
	return client.FeedbackTransportCC
}

// isReport reports whether packet is an arrival report of either format.
func isReport(packet []byte) bool {
	return feedback.IsTransportFeedback(packet) || feedback.IsCongestionReport(packet)
}

// arrivals records arrivals and builds the receiver's reports. Exactly one of the two recorders is set.
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

// SSRCs of the reporting receiver and of the reported media. The simulated server does not read either.
const reporter, reported = 1, 2

// received records a packet that has arrived with a codepoint.
func (a *arrivals) received(h *header, size int, codepoint ecn.Codepoint, now time.Duration) {
	if a.streams != nil {
		a.streams.Received(h.ssrc(), h.number, size, codepoint, at(now))
		return
	}
	a.transport.Received(h.number, size, at(now))
}

// next returns the time when a report is due, or never if there is nothing to report.
func (a *arrivals) next() time.Duration {
	if a.streams != nil {
		return due(a.streams.Next())
	}
	return due(a.transport.Next())
}

// report returns one report if a report is due. The caller repeats the call until the result is empty.
func (a *arrivals) report(now time.Duration) []byte {
	if a.streams != nil {
		return a.streams.AppendReports(nil, at(now))
	}
	return a.transport.AppendReports(nil, reporter, reported, at(now))
}
