package transport

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/pion/transport/v4/packetio"
)

// Sink takes what arrives on a peer connection, decrypted. RTP is called by one goroutine and RTCP by another; both must return soon, since
// the next packet waits. A packet is valid until the call returns.
type Sink interface {
	// RTP takes a whole RTP packet of the stream.
	RTP(ssrc uint32, packet []byte, now time.Time)
	// RTCP takes one RTCP packet (not a compound) that speaks of the stream, or is its own sender report.
	RTCP(ssrc uint32, packet []byte, now time.Time)
}

// maxStreams bounds how many SSRCs one peer may make Pion keep state for, far above what limits on publications allow.
const maxStreams = 16384

// tap diverts decrypted packets from Pion's SRTP sessions to a sink. Pion makes one buffer per SSRC; ours keep nothing.
type tap struct {
	sink    Sink
	streams atomic.Int32
	// overflow is told once when a peer uses more SSRCs than maxStreams.
	overflow func()
}

// buffer implements webrtc.SettingEngine.BufferFactory.
func (t *tap) buffer(kind packetio.BufferPacketType, ssrc uint32) io.ReadWriteCloser {
	if t.streams.Add(1) == maxStreams {
		t.overflow()
	}
	if kind == packetio.RTCPBufferPacket {
		return rtcpTap{t.sink, ssrc}
	}
	return rtpTap{t.sink, ssrc}
}

// rtpTap is the "buffer" of one SSRC's RTP. Nothing is ever read from it: Pion's tracks stay unused.
type rtpTap struct {
	sink Sink
	ssrc uint32
}

func (t rtpTap) Write(packet []byte) (int, error) {
	t.sink.RTP(t.ssrc, packet, time.Now())
	return len(packet), nil
}

func (t rtpTap) Read([]byte) (int, error) { return 0, io.EOF }
func (t rtpTap) Close() error             { return nil }

// rtcpTap is the "buffer" of one SSRC's RTCP.
type rtcpTap struct {
	sink Sink
	ssrc uint32
}

func (t rtcpTap) Write(packet []byte) (int, error) {
	t.sink.RTCP(t.ssrc, packet, time.Now())
	return len(packet), nil
}

func (t rtcpTap) Read([]byte) (int, error) { return 0, io.EOF }
func (t rtcpTap) Close() error             { return nil }
