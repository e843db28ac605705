package sender

import (
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
)

// History records the packets sent to one receiver and derives their fate from the receiver's reports.
type History struct {
	// One of these is nil.
	numbers *feedback.TransportHistory
	streams *feedback.CongestionHistory
}

// NewNumbered returns a history for a receiver that reports transport-wide numbers
// (draft-holmer-rmcat-transport-wide-cc-extensions-01). The first packet has the number first.
func NewNumbered(first uint16) *History {
	return &History{numbers: feedback.NewTransportHistory(first)}
}

// NewByStream returns a history for a receiver that reports SSRCs and sequence numbers (RFC 8888).
func NewByStream() *History { return &History{streams: feedback.NewCongestionHistory()} }

// ByStream reports whether the receiver reports by SSRC and sequence number.
func (h *History) ByStream() bool { return h.streams != nil }

// sent records a packet that leaves with a codepoint, with its size on the wire in bytes, and returns its place in the
// order of sending. The low 16 bits are its transport-wide number.
func (h *History) sent(
	ssrc uint32, sequence uint16, size int, kind feedback.PacketKind, codepoint ecn.Codepoint, now time.Time,
) int64 {
	if h.streams != nil {
		return h.streams.Sent(ssrc, sequence, size, kind, codepoint, now)
	}
	return h.numbers.Sent(size, kind, now)
}

// report appends the new results of a report to results.
func (h *History) report(packet []byte, arrived time.Time, results []feedback.PacketResult) []feedback.PacketResult {
	if h.streams != nil {
		return h.streams.Feedback(packet, arrived, results)
	}
	return h.numbers.Feedback(packet, arrived, results)
}

// inFlight returns the number of bytes sent that no report covers.
func (h *History) inFlight() int {
	if h.streams != nil {
		return h.streams.InFlight()
	}
	return h.numbers.InFlight()
}

// Stats returns the counters.
func (h *History) Stats() feedback.TransportHistoryStats {
	if h.streams != nil {
		return h.streams.Stats()
	}
	return h.numbers.Stats()
}
