package client

import (
	"encoding/binary"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

// arrivals record when packets of the connection came, for the server's congestion control: by the numbers that it gives them over the whole connection, or by
// SSRC and sequence number, where that is what was agreed on (RFC 8888). They belong to media's lock.
type arrivals struct {
	transport *feedback.TransportRecorder
	// streams is nil but for RFC 8888.
	streams *feedback.CongestionRecorder
}

func newArrivals() arrivals {
	return arrivals{transport: feedback.NewTransportRecorder(feedback.DefaultConfig().Transport)}
}

// agree takes how packets are numbered and reported from now on. extension identifies the header extension that numbers
// the packets of the whole connection, 0 for none: a client that reports by SSRC has none until it publishes.
func (m *media) agree(extension uint8, byStream bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uplink.number(extension, m.session.config.congestion(), time.Now())
	switch a := &m.arrivals; {
	case !byStream:
		a.streams = nil
	case a.streams == nil:
		a.streams = feedback.NewCongestionRecorder(feedback.DefaultConfig().Transport, m.ssrc)
	}
}

// received takes a whole RTP packet. The socket does not tell its ECN bits.
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

// minRTP is the size of the header that all RTP packets have.
const minRTP = 12

// appendReports appends one report, if one is due. sender is our SSRC.
func (a *arrivals) appendReports(dst []byte, sender uint32, now time.Time) []byte {
	if a.streams != nil {
		return a.streams.AppendReports(dst, now)
	}
	return a.transport.AppendReports(dst, sender, 0, now)
}
