package sender

import (
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

// History knows the packets sent to one receiver, and learns from its reports what became of each.
type History struct {
	// One of these is nil.
	numbers *feedback.TransportHistory
	streams *feedback.CongestionHistory
}

// NewNumbered makes a history for a receiver that reports by transport-wide numbers
// (draft-holmer-rmcat-transport-wide-cc-extensions-01), of which the given one is the first.
func NewNumbered(first uint16) *History {
	return &History{numbers: feedback.NewTransportHistory(first)}
}

// NewByStream makes a history for a receiver that reports by SSRC and sequence number (RFC 8888).
func NewByStream() *History { return &History{streams: feedback.NewCongestionHistory()} }

// ByStream reports whether the receiver reports by SSRC and sequence number.
func (h *History) ByStream() bool { return h.streams != nil }

// sent records a packet, with its size on the wire in bytes, and returns its place in the order of sending. The low 16
// bits are its transport-wide number.
func (h *History) sent(ssrc uint32, sequence uint16, size int, kind feedback.PacketKind, now time.Time) int64 {
	if h.streams != nil {
		return h.streams.Sent(ssrc, sequence, size, kind, now)
	}
	return h.numbers.Sent(size, kind, now)
}

// report appends to results what is new in a report.
func (h *History) report(packet []byte, arrived time.Time, results []feedback.PacketResult) []feedback.PacketResult {
	if h.streams != nil {
		return h.streams.Feedback(packet, arrived, results)
	}
	return h.numbers.Feedback(packet, arrived, results)
}

// Stats are the counts so far.
func (h *History) Stats() feedback.TransportHistoryStats {
	if h.streams != nil {
		return h.streams.Stats()
	}
	return h.numbers.Stats()
}
