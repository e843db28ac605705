// Package outcome owns the words in which reports of arrivals are passed on: feedback makes them of whatever format a receiver reports in, congestion
// estimates by them. Neither knows the other, so what both speak of stands below them. It has no behaviour and no state.
package outcome

import "time"

// Kind says what a packet was sent for.
type Kind uint8

// The kinds of packets.
const (
	Media Kind = iota
	// Parity is the redundancy of payload v1.
	Parity
	Audio
	// Retransmission is an RTX packet (RFC 4588).
	Retransmission
	// Probe is a packet that is sent to fill a probe only.
	Probe
)

// ECN is the field of explicit congestion notification in an IP header (RFC 3168 section 5), with its values there.
type ECN uint8

// The codepoints.
const (
	NotECT                ECN = 0
	ECT1                  ECN = 1
	ECT0                  ECN = 2
	CongestionExperienced ECN = 3
)

// Packet is what became of a packet, as its receiver reports it.
type Packet struct {
	// Sequence counts the packets of a transport in the order of sending: the extended transport-wide sequence number, where packets have one. One thing is said of
	// a packet, but for one that was reported as lost and arrived after all: that one comes again. Reports, and what one report says after another of different
	// streams, need not come in this order.
	Sequence int64
	// Size is what the packet took on the wire, in bytes, IP and UDP headers included.
	Size int
	// Sent is when the packet went out.
	Sent time.Time
	// Arrived is when it arrived, by the receiver's clock, in steps of 250 µs (RFC 8888: 1/1024 s), from an arbitrary beginning: only differences mean something.
	// It means nothing for a lost packet.
	Arrived time.Duration
	// Probe is the ID of the cluster that the packet was sent in, 0 for none. Who sent it knows.
	Probe int
	// Received tells a packet that arrived from one that was lost.
	Received bool
	// Late tells that a result before called the packet lost.
	Late bool
	Kind Kind
	// ECN is what the packet's IP header said on arrival. Transport-wide feedback does not tell.
	ECN ECN
}
