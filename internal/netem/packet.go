package netem

import (
	"net/netip"
	"time"
)

// ECN is the explicit congestion notification codepoint of an IP packet (RFC 3168, RFC 9331).
type ECN uint8

// The codepoints, with their values in the IP header.
const (
	NotECT                ECN = 0
	ECT1                  ECN = 1
	ECT0                  ECN = 2
	CongestionExperienced ECN = 3
)

// Packet is one datagram on its way. Whoever sends it gives it away until the Link delivers it; one that is
// dropped goes back to the PacketPool that it came from, if any.
type Packet struct {
	// Payload is carried, never read. A copy made by duplication has a payload of its own.
	Payload []byte
	// Size is the number of bytes that the packet occupies on the wire and in queues, headers included. It is independent of Payload, so
	// that a simulation needs no bytes.
	Size int
	// Flow tells the flows apart that share a bottleneck.
	Flow uint64
	// Route and Hop are carried, never read, by a Link: which way the packet takes through a network of links, and how many of them it has entered.
	Route uint32
	Hop   uint8
	// Late is carried, never read, by a Link: how much later than it should a router in real time has let the packet in.
	Late time.Duration
	// Number is carried, never read: a sender that carries no payload may number its packets.
	Number uint64
	// ECN is passed on as it came, unless a Queue marks it.
	ECN ECN
	// Source and Destination are carried, never read, by a Link. A Network routes by them.
	Source, Destination netip.AddrPort
	// Arrival is when the packet leaves the link at its far end. The Link sets it.
	Arrival time.Time
	// Waited is how long the packet was in the queue, its own transmission not included. The Link sets it.
	Waited time.Duration

	order uint64 // position among the packets offered to the link, from 1; a copy has its original's
	copy  bool   // made by duplication
	fate  fate

	queued  time.Time // when it was offered to the queue
	offered ECN       // as which it was offered
	pool    *PacketPool
}

// clone returns a copy that shares nothing with p.
func (p *Packet) clone() *Packet {
	c := *p
	c.Payload = append([]byte(nil), p.Payload...)
	c.copy = true
	return &c
}
