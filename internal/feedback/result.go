package feedback

import (
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
)

// PacketKind is the purpose of a packet.
type PacketKind uint8

// The kinds of packets.
const (
	Media PacketKind = iota
	// Parity is the redundancy of payload v1.
	Parity
	Audio
	// Retransmission is an RTX packet (RFC 4588).
	Retransmission
	// Probe is a packet that only fills a probe.
	Probe
)

// PacketResult is the receiver's report on a packet.
type PacketResult struct {
	// Sequence counts the packets of a transport in the order of sending: the extended transport-wide sequence number,
	// if packets have one. A packet has one result, or two if it was reported as lost and arrived after all. Results
	// need not come in the order of sending.
	Sequence int64
	// Size is the size of the packet on the wire, in bytes, IP and UDP headers included.
	Size int
	// Sent is when the packet left.
	Sent time.Time
	// Arrived is when the packet arrived, by the receiver's clock, in steps of 250 µs (RFC 8888: 1/1024 s), since an
	// arbitrary beginning: only differences have a meaning. For a lost packet Arrived has none.
	Arrived time.Duration
	// Probe is the ID of the probe cluster that the packet was sent in, 0 for none. The sender fills it in.
	Probe int
	// Received is set if the packet arrived, and not if it was lost.
	Received bool
	// Late is set if an earlier result reported the packet as lost.
	Late bool
	Kind PacketKind
	// ECN is the codepoint of the packet on arrival, SentECN the codepoint with which it left. Transport-wide feedback
	// reports neither.
	ECN, SentECN ecn.Codepoint
}
