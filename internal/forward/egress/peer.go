package egress

import (
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

// Batch collects what several peers send at one time, so that one system call may take it all. A batch belongs to one
// goroutine at a time.
type Batch interface {
	// Send sends what waits in the batch.
	Send()
	// Empty reports whether nothing waits in the batch.
	Empty() bool
}

// Peer is one receiver's peer connection. Its methods are safe for any goroutine.
type Peer interface {
	// Post sends what outlets of the peer have queued, or leaves it to the batch, which the caller sends. Packets that
	// cannot be sent are lost, as they might be on the network. On a closed peer, Post has no effect.
	Post(Batch)
	// Blocked reports whether packets to the peer would be lost on this host: the send buffer had no room for a while,
	// or the remote peer does not consent to being sent anything (RFC 7675). It takes no lock.
	Blocked(now time.Time) bool
	// WriteRTCP sends packets as one compound packet.
	WriteRTCP([]rtcp.Packet) error
	// RTT is the round-trip time, 0 while it is unknown.
	RTT() time.Duration
	// TransportSequenceID is the identifier of the header extension by which all packets of the connection are
	// numbered, in both directions (draft-holmer-rmcat-transport-wide-cc-extensions-01), 0 while there is none. It
	// takes no lock.
	TransportSequenceID() uint8
	// ReportsByStream reports whether the peer reports what it gets by SSRC and sequence number (RFC 8888), and not by
	// the numbers of the extension. It takes no lock.
	ReportsByStream() bool
}

// Outlet is one outgoing RTP stream of a peer connection. Queue is called by one goroutine at a time and keeps neither
// header nor payload; it does not wait for the receiver: meanwhile those that share the writer would wait, and perhaps
// the publisher whose packet it is.
type Outlet interface {
	// Queue takes a packet. What one peer's outlets have queued leaves in that order, at the next Flush of their peer
	// at the latest. A packet that Queue returns an error for is not sent, and not queued again: its sequence number is
	// spent.
	Queue(h *rtp.Header, payload []byte) error
	// SSRC is the stream's SSRC, 0 before it is negotiated.
	SSRC() uint32
	// RetransmissionSSRC is the SSRC of the RTX stream (RFC 4588), 0 where there is none.
	RetransmissionSSRC() uint32
	// PayloadType gives the negotiated payload types of a media type and of its retransmissions, 0 for the latter where
	// there are none.
	PayloadType(mime string) (media, retransmission uint8, ok bool)
}
