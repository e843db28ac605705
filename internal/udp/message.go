package udp

import (
	"iter"
	"net/netip"
)

const (
	// A buffer holds whatever IP can carry in one packet, and a run never exceeds that: Linux limits both segmented sends and coalescing to 64 kB.
	bufferSize = 1 << 16
	// maxSegments is UDP_MAX_SEGMENTS of Linux since 4.18; kernels from 6.9 on take twice as many, but 64 of 1,200 bytes exceed the packet already.
	maxSegments = 64
	// callLength is how many runs one system call sends at most, since everything else may have to wait for it: 0.6 ms where each has 64 kB. The call itself, some 300 ns, is little
	// to so many.
	callLength = 16
	// What fits an IP packet: 65,535 bytes, less 20 of the IPv4 header and 8 of the UDP header.
	maxPayloadIPv4 = 65535 - 20 - 8
	// IPv6 does not count its header of 40 bytes in the length. Counted all the same, because what the kernel puts between it and UDP is not known here.
	maxPayloadIPv6 = 65535 - 40 - 8
)

// Message is a run of datagrams from or to one address. An IPv4 address may come as it is or mapped to IPv6 where a message is sent; received ones are never
// mapped. The zone of a link-local address is the name or the number of an interface.
type Message struct {
	Peer netip.AddrPort
	// Data is the payloads one after the other. It is cut every Segment bytes; the last datagram may be shorter.
	Data []byte
	// Segment is the length of the datagrams in bytes. 0, or any length from that of Data on, means a single datagram, which may be empty.
	Segment int
	// Stamped asks for the time at which the first datagram of a message leaves, where the socket takes stamps; Inbox.Departures brings it.
	Stamped bool
	// Arrived is when the first datagram of a received message came, where the socket takes stamps.
	Arrived Stamp
}

// Stamp is when the system saw a datagram, in nanoseconds since 1970; 0 where it does not tell. Kernel is by the system's clock, Hardware by the network card's.
type Stamp struct{ Kernel, Hardware int64 }

// headSize is how much of a departed datagram is told: the header that all RTP packets have.
const headSize = 12

// Departure is a datagram that has left, for which Message.Stamped was set. Kernel and network card may tell by one Departure each.
type Departure struct {
	Peer netip.AddrPort
	// Head is how the datagram begins; what it lacks is 0.
	Head [headSize]byte
	Stamp
}

// Count returns how many datagrams the message holds, at least 1.
func (m Message) Count() int {
	if m.Segment <= 0 || m.Segment >= len(m.Data) {
		return 1
	}
	return (len(m.Data) + m.Segment - 1) / m.Segment
}

// Datagrams yields the payload of each datagram in order. The slices point into Data.
func (m Message) Datagrams() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		rest := m.Data
		for range m.Count() - 1 {
			if !yield(rest[:m.Segment:m.Segment]) {
				return
			}
			rest = rest[m.Segment:]
		}
		yield(rest)
	}
}

// cursor cuts messages into what one message of the kernel's can carry.
type cursor struct {
	messages []Message
	offset   int // bytes of the first message that have been taken
}

// next takes the next run: a single datagram, or where segmented as many datagrams of one message as a segmented send may hold. It reports whether
// there was one.
func (c *cursor) next(segmented bool) (Message, bool) {
	if len(c.messages) == 0 {
		return Message{}, false
	}
	run := c.messages[0]
	run.Data = run.Data[c.offset:]
	run.Stamped = run.Stamped && c.offset == 0
	length := len(run.Data)
	if run.Segment > 0 && run.Segment < length {
		segments := 1
		if segmented {
			segments = max(1, min(maxSegments, maxPayload(run.Peer.Addr())/run.Segment))
		}
		length = min(length, segments*run.Segment)
	}
	c.offset += length
	if c.offset == len(c.messages[0].Data) {
		c.messages, c.offset = c.messages[1:], 0
	}
	run.Data = run.Data[:length:length]
	return run, true
}

// maxPayload is what a UDP datagram to an address can carry, in bytes, and so can a run.
func maxPayload(peer netip.Addr) int {
	if peer.Is4() || peer.Is4In6() {
		return maxPayloadIPv4
	}
	return maxPayloadIPv6
}

// Inbox is the memory that datagrams are received into, used again and again by one goroutine. Batched receiving takes 1 MB of it, of which the system
// provides pages only as datagrams touch them; plain receiving takes 64 kB.
type Inbox struct {
	messages   []Message
	departures []Departure
	memory     []byte
	batch      inboxBatch
}

// NewInbox returns an Inbox without memory; the first Receive allocates it.
func NewInbox() *Inbox { return new(Inbox) }

// Messages returns what the last Receive brought. It is valid until the next Receive into this Inbox.
func (in *Inbox) Messages() []Message { return in.messages }

// Departures returns the stamps that the last Receive brought of datagrams that were sent. It is valid until the next Receive into this Inbox.
func (in *Inbox) Departures() []Departure { return in.departures }

// reserve provides memory for a number of buffers.
func (in *Inbox) reserve(buffers int) {
	if len(in.memory) < buffers*bufferSize {
		in.memory = make([]byte, buffers*bufferSize)
	}
}

// buffer is one of the reserved buffers.
func (in *Inbox) buffer(index int) []byte {
	return in.memory[index*bufferSize : (index+1)*bufferSize : (index+1)*bufferSize]
}

// append adds what a buffer received: its first length bytes, in segments of the given size or 0 for a single datagram.
func (in *Inbox) append(peer netip.AddrPort, index, length, segment int) {
	if segment <= 0 || segment > length {
		segment = length
	}
	in.messages = append(in.messages, Message{Peer: peer, Data: in.buffer(index)[:length:length], Segment: segment})
}
