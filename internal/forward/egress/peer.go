package egress

import (
	"net/netip"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/ecn"
)

// Batch collects the packets that several peers send at one time, so that one system call may send all of them. A batch
// belongs to one goroutine at a time.
type Batch interface {
	// Send sends the packets in the batch.
	Send()
	// Empty reports whether the batch holds no packet.
	Empty() bool
}

// Peer is one receiver's peer connection. Its methods are safe for any goroutine.
type Peer interface {
	// Post sends the packets that outlets of the peer have queued, or adds them to the batch, which the caller sends.
	// Packets that cannot be sent are lost, as on the network. On a closed peer, Post has no effect.
	Post(Batch)
	// SetECN sets the codepoint with which RTP packets leave that are queued from now on. SetECN takes no lock.
	SetECN(ecn.Codepoint)
	// Blocked reports whether packets to the peer would be lost on this host: the send buffer has had no room for a
	// while, or the remote peer does not consent to receive (RFC 7675). Blocked takes no lock.
	Blocked(now time.Time) bool
	// WriteRTCP sends packets as one compound packet.
	WriteRTCP([]rtcp.Packet) error
	// RTT returns the round-trip time, 0 while unknown.
	RTT() time.Duration
	// TransportSequenceID returns the identifier of the header extension that numbers all packets of the connection, in
	// both directions (draft-holmer-rmcat-transport-wide-cc-extensions-01), 0 while there is none. TransportSequenceID
	// takes no lock.
	TransportSequenceID() uint8
	// ReportsByStream reports whether the peer reports arrivals by SSRC and sequence number (RFC 8888), and not by the
	// numbers of the extension. ReportsByStream takes no lock.
	ReportsByStream() bool
}

// located is a Peer that knows the address to which its media leaves.
type located interface {
	// RemoteAddress returns the address, the zero Addr while media passes through ICE. RemoteAddress takes no lock.
	RemoteAddress() netip.Addr
}

// Outlet is one outgoing RTP stream of a peer connection. One goroutine at a time calls Queue. Queue keeps neither
// header nor payload and must not wait for the receiver, because that would delay the other receivers of the writer,
// and perhaps the publisher of the packet.
type Outlet interface {
	// Queue queues a packet. Packets of one peer's outlets leave in the order of Queue, at the latest at the next Post
	// of the peer. If Queue returns an error, the packet is not sent and not queued again; its sequence number is used
	// up.
	Queue(h *rtp.Header, payload []byte) error
	// SSRC returns the negotiated SSRC of the stream, 0 before negotiation.
	SSRC() uint32
	// RetransmissionSSRC returns the SSRC of the RTX stream (RFC 4588), 0 if there is none.
	RetransmissionSSRC() uint32
	// PayloadType returns the negotiated payload types of a media type and of its retransmissions. The latter is 0 if
	// retransmissions are not negotiated.
	PayloadType(mime string) (media, retransmission uint8, ok bool)
}
