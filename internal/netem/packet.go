package netem

import (
	"net/netip"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
)

// Packet is one datagram in transit. Send passes its ownership to the Link until the packet is delivered; a dropped
// packet returns to the PacketPool from which it came, if any.
type Packet struct {
	// Payload is carried, never read. A copy made by duplication has a payload of its own.
	Payload []byte
	// Size is the number of bytes of the packet on the wire and in queues, headers included. It is independent of
	// Payload, so that a simulation needs no payload.
	Size int
	// Flow identifies a flow at a bottleneck.
	Flow uint64
	// Route and Hop are carried, never read, by a Link: the route of the packet through a network of links, and the
	// number of links that it has entered.
	Route uint32
	Hop   uint8
	// Late is carried, never read, by a Link: the lateness with which a router in real time accepted the packet.
	Late time.Duration
	// Number is carried, never read: a sender without payload may number its packets.
	Number uint64
	// ECN does not change unless a Queue marks the packet.
	ECN ecn.Codepoint
	// Source and Destination are carried, never read, by a Link. A Network routes by them.
	Source, Destination netip.AddrPort
	// Arrival is the time at which the packet leaves the link at its far end. The Link sets it.
	Arrival time.Time
	// Waited is the time of the packet in the queue, without its own transmission. The Link sets it.
	Waited time.Duration

	order uint64 // position among the packets offered to the link, from 1; a copy has that of its original
	copy  bool   // made by duplication
	fate  fate

	queued  time.Time     // time of enqueueing
	offered ecn.Codepoint // value when the packet was offered
	pool    *PacketPool
}

// Offered returns the codepoint with which the packet was offered to its Link, after Config.ECN. A Queue's mark does
// not change it.
func (p *Packet) Offered() ecn.Codepoint { return p.offered }

// clone returns a copy that shares no memory with p.
func (p *Packet) clone() *Packet {
	c := *p
	c.Payload = append([]byte(nil), p.Payload...)
	c.copy = true
	return &c
}
