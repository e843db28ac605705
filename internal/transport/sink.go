package transport

import (
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
)

// PacketInfo describes an incoming packet besides its bytes.
type PacketInfo struct {
	// At is when this process read the packet from its socket. At has a monotonic clock reading.
	At time.Time
	// Kernel and Hardware are when the kernel and the network card received the packet, by the system's clock. If the
	// kernel coalesced packets into one run, the times are those of the first packet. Unknown times are zero: those of
	// packets that passed through ICE, and of the first packets of a process, for which the kernel enables timestamps
	// with a delay.
	Kernel, Hardware time.Time
	// Path is the number of the path on which the packet arrived: the index of the client's interface in the order of
	// the client's configuration. It is 0 for peers without Peer.UseAllPairs and for packets that passed through ICE.
	Path uint8
	// ECN is the codepoint with which the packet arrived, or NotECT if it is unknown, as those of packets that passed
	// through ICE.
	ECN ecn.Codepoint
}

// maxLate is the maximum time for which a packet waits in a socket. A socket's buffer of 8 MiB holds a second of
// 67 Mbit/s. A larger difference between reading and Kernel means that the system's clock was set in between.
const maxLate = time.Second

// Arrived returns when the packet reached this host, for reports about the network: Kernel, on the time scale of At. A
// process reads packets some milliseconds late if other processes use the processors, and that delay is not the
// network's. Arrived returns At if Kernel is unknown.
func (i *PacketInfo) Arrived() time.Time {
	if i.Kernel.IsZero() {
		return i.At
	}
	late := i.At.Sub(i.Kernel)
	if late < 0 || late > maxLate {
		return i.At
	}
	return i.At.Add(-late)
}

// Sink receives the decrypted packets of a peer connection. One goroutine at a time calls RTP and RTCP. Others may call
// the other methods at the same time. All methods must return soon, because the next packet waits. Byte slices and
// infos are valid until the method returns. A Sink embeds NoOpSink for the methods that it does not need.
type Sink interface {
	// RTP receives a complete RTP packet of the stream.
	RTP(ssrc uint32, packet []byte, info *PacketInfo)
	// Repeated reports a packet of which RTP has received another copy before. Only peers with Peer.UseAllPairs have
	// copies. Repeated is called by the goroutine that calls RTP.
	Repeated(ssrc uint32, sequence uint16, info *PacketInfo)
	// RTCP receives one RTCP packet, not a compound. The header is valid. The body is not checked.
	RTCP(packet []byte, now time.Time)
	// Signal is called only if a batch has packets of several peers. It is called after the last packet of the batch,
	// and before the Flush of the first of these peers, by the goroutine that calls RTP.
	Signal()
	// Flush ends a batch: no other packet is known to follow at once.
	Flush()
	// Sent reports the departure of a packet for which Peer.StampNext was called. The times of the kernel and of the
	// network card may come in two calls. Unknown times are zero.
	Sent(ssrc uint32, sequence uint16, kernel, hardware time.Time)
	// Data receives a message of the data channel that the remote peer opened with the label. Each channel has one
	// goroutine that calls Data. While Data runs, the remote peer cannot send more than the receive window holds.
	Data(label string, message []byte, now time.Time)
	// Acknowledged is called when the remote peer may have acknowledged more of the bytes sent on data channels. One
	// goroutine calls Acknowledged. SCTP reads nothing meanwhile.
	Acknowledged(now time.Time)
}

// NoOpSink is a Sink that ignores everything.
type NoOpSink struct{}

// RTP implements Sink.
func (NoOpSink) RTP(uint32, []byte, *PacketInfo) {}

// Repeated implements Sink.
func (NoOpSink) Repeated(uint32, uint16, *PacketInfo) {}

// RTCP implements Sink.
func (NoOpSink) RTCP([]byte, time.Time) {}

// Signal implements Sink.
func (NoOpSink) Signal() {}

// Flush implements Sink.
func (NoOpSink) Flush() {}

// Sent implements Sink.
func (NoOpSink) Sent(uint32, uint16, time.Time, time.Time) {}

// Data implements Sink.
func (NoOpSink) Data(string, []byte, time.Time) {}

// Acknowledged implements Sink.
func (NoOpSink) Acknowledged(time.Time) {}
