package feedback

import (
	"encoding/binary"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
)

// ArrivalRecorder records the arrivals of the packets of one transport and reports them to their sender in the
// negotiated form: by transport-wide numbers (TransportRecorder), or by SSRC and sequence number (CongestionRecorder).
type ArrivalRecorder struct {
	cfg TransportFeedbackConfig
	// sender is the SSRC of the reports. media is the SSRC of the last packet: senders look for one of their own SSRCs
	// in reports of numbers.
	sender, media uint32
	numbers       *TransportRecorder
	// streams is nil unless reports are by stream.
	streams *CongestionRecorder
	// former is the number of reports by stream before the form changed.
	former uint64
}

// NewArrivalRecorder returns a recorder of transport-wide numbers, whose reports have the SSRC sender.
func NewArrivalRecorder(cfg TransportFeedbackConfig, sender uint32) *ArrivalRecorder {
	return &ArrivalRecorder{cfg: cfg, sender: sender, numbers: NewTransportRecorder(cfg)}
}

// ReportByStream sets whether arrivals are reported by SSRC and sequence number. A change drops arrivals by stream that
// were not reported.
func (r *ArrivalRecorder) ReportByStream(byStream bool) {
	switch {
	case byStream && r.streams == nil:
		r.streams = NewCongestionRecorder(r.cfg, r.sender)
	case !byStream && r.streams != nil:
		r.former += r.streams.Stats().Reports
		r.streams = nil
	}
}

// Received records an RTP packet that arrived with a codepoint. extension identifies the header extension with the
// transport-wide number, 0 for none. Packets without a number are not reported by number.
func (r *ArrivalRecorder) Received(
	ssrc uint32, packet []byte, extension uint8, codepoint ecn.Codepoint, now time.Time,
) {
	r.media = ssrc
	if r.streams != nil {
		if len(packet) >= rtpHeaderSize {
			r.streams.Received(ssrc, binary.BigEndian.Uint16(packet[2:]), len(packet), codepoint, now)
		}
		return
	}
	if number, ok := TransportSequence(packet, extension); ok {
		r.numbers.Received(number, len(packet), now)
	}
}

// Next returns the time of the next report, or the zero time if there is nothing to report. Received packets may change
// it.
func (r *ArrivalRecorder) Next() time.Time {
	if r.streams != nil {
		return r.streams.Next()
	}
	return r.numbers.Next()
}

// AppendReports appends one RTCP compound of reduced size (RFC 5506) to dst, if a report is due. The caller repeats the
// call until nothing is appended.
func (r *ArrivalRecorder) AppendReports(dst []byte, now time.Time) []byte {
	if r.streams != nil {
		return r.streams.AppendReports(dst, now)
	}
	return r.numbers.AppendReports(dst, r.sender, r.media, now)
}

// Reports returns the number of RTCP packets made.
func (r *ArrivalRecorder) Reports() uint64 {
	made := r.former + r.numbers.Stats().Reports
	if r.streams != nil {
		made += r.streams.Stats().Reports
	}
	return made
}
