package downlink

import (
	"encoding/binary"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

// minRTP is the size in bytes of the header that all RTP packets have.
const minRTP = 12

// arrivals records the arrival times of the packets of the connection for the server's congestion control: by
// transport-wide number, or by SSRC and sequence number (RFC 8888) if that was negotiated.
type arrivals struct {
	transport *feedback.TransportRecorder
	// streams is nil except for RFC 8888.
	streams *feedback.CongestionRecorder
}

func newArrivals() arrivals {
	return arrivals{transport: feedback.NewTransportRecorder(feedback.DefaultConfig().Transport)}
}

// reportByStream sets whether arrivals are reported by SSRC and sequence number. sender is the SSRC of the reports.
func (a *arrivals) reportByStream(byStream bool, sender uint32) {
	switch {
	case !byStream:
		a.streams = nil
	case a.streams == nil:
		a.streams = feedback.NewCongestionRecorder(feedback.DefaultConfig().Transport, sender)
	}
}

// received records a whole RTP packet. The socket does not provide the packet's ECN bits.
func (a *arrivals) received(ssrc uint32, packet []byte, extension uint8, now time.Time) {
	if a.streams != nil {
		if len(packet) >= minRTP {
			a.streams.Received(ssrc, binary.BigEndian.Uint16(packet[2:]), len(packet), feedback.NotECT, now)
		}
		return
	}
	if number, ok := feedback.TransportSequence(packet, extension); ok {
		a.transport.Received(number, len(packet), now)
	}
}

// appendReports appends one report, if one is due. sender is the SSRC of the report.
func (a *arrivals) appendReports(dst []byte, sender uint32, now time.Time) []byte {
	if a.streams != nil {
		return a.streams.AppendReports(dst, now)
	}
	return a.transport.AppendReports(dst, sender, 0, now)
}
