package udp

import (
	"iter"
	"net/netip"

	"github.com/volsfu/volsfu/internal/ecn"
)

const (
	// A buffer holds the largest IP packet, and a run never exceeds that: Linux limits both segmented sends and
	// coalescing to 64 kB.
	bufferSize = 1 << 16
	// maxSegments is UDP_MAX_SEGMENTS of Linux since 4.18; kernels from 6.9 on accept twice as many, but 64 segments of
	// 1,200 bytes already exceed the packet.
	maxSegments = 64
	// callLength bounds the runs of one system call, since everything else may have to wait for the call: 0.6 ms if
	// each run has 64 kB. The overhead of a call, about 300 ns, is small for so many runs.
	callLength = 16
	// The payload of an IP packet: 65,535 bytes, less 20 of the IPv4 header and 8 of the UDP header.
	maxPayloadIPv4 = 65535 - 20 - 8
	// IPv6 does not include its header of 40 bytes in the length. The header is subtracted nevertheless, because
	// extension headers added by the kernel are not known here.
	maxPayloadIPv6 = 65535 - 40 - 8
)

// Message is a run of datagrams from or to one address. For sending, an IPv4 address may be mapped to IPv6; addresses
// of received messages are never mapped. The zone of a link-local address is the name or the number of an interface.
type Message struct {
	Peer netip.AddrPort
	// Data is the payloads one after the other, each of Segment bytes; the last datagram may be shorter.
	Data []byte
	// Segment is the length of the datagrams in bytes. 0, or a length of at least that of Data, means a single
	// datagram, which may be empty.
	Segment int
	// ECN is the codepoint with which all datagrams of the message arrived or will leave. A message to send leaves as
	// Not-ECT if the socket cannot set codepoints; a received message has NotECT if the codepoint is unknown. Both are
	// so with plain calls, except on a connection passed to Attach that carries codepoints.
	ECN ecn.Codepoint
	// Stamped requests the departure time of the message's first datagram if the socket takes timestamps;
	// Inbox.Departures returns it.
	Stamped bool
	// Arrived is the arrival time of the first datagram of a received message if the socket takes timestamps.
	Arrived Stamp
}

// Stamp is the time at which the system processed a datagram, in nanoseconds since 1970; 0 is unknown. Kernel is by the
// system's clock, Hardware by the network card's.
type Stamp struct{ Kernel, Hardware int64 }

// headSize is the number of bytes of a departed datagram that are reported: the fixed header of all RTP packets.
const headSize = 12

// Departure is a sent datagram with Message.Stamped. Kernel and network card may each report one Departure.
type Departure struct {
	Peer netip.AddrPort
	// Head is the start of the datagram, padded with zeros.
	Head [headSize]byte
	Stamp
}

// Count returns the number of datagrams in the message, at least 1.
func (m Message) Count() int {
	if m.Segment <= 0 || m.Segment >= len(m.Data) {
		return 1
	}
	return (len(m.Data) + m.Segment - 1) / m.Segment
}

// Datagrams yields the payload of each datagram in order. The slices refer to Data.
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

// cursor divides messages into runs, each of which fits one message of the kernel.
type cursor struct {
	messages []Message
	offset   int // bytes of the first message that are done
}

// next returns the next run: a single datagram, or if segmented is set as many datagrams of one message as a segmented
// send may hold. It reports whether there was one.
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

// maxPayload returns the largest payload of a UDP datagram to an address, in bytes, which is also the limit of a run.
func maxPayload(peer netip.Addr) int {
	if peer.Is4() || peer.Is4In6() {
		return maxPayloadIPv4
	}
	return maxPayloadIPv6
}

// Inbox is the memory for received datagrams, reused by one goroutine. Batched receiving needs 1 MB of address space,
// of which the system provides only the touched pages; plain receiving needs 64 kB.
type Inbox struct {
	messages   []Message
	departures []Departure
	memory     []byte
	batch      inboxBatch
}

// NewInbox returns an Inbox without memory; the first Receive allocates it.
func NewInbox() *Inbox { return new(Inbox) }

// Messages returns the messages of the last Receive. The result is valid until the next Receive into this Inbox.
func (in *Inbox) Messages() []Message { return in.messages }

// Departures returns the timestamps of sent datagrams of the last Receive. The result is valid until the next Receive
// into this Inbox.
func (in *Inbox) Departures() []Departure { return in.departures }

// reserve allocates a number of buffers.
func (in *Inbox) reserve(buffers int) {
	if len(in.memory) < buffers*bufferSize {
		in.memory = make([]byte, buffers*bufferSize)
	}
}

// buffer returns one of the reserved buffers.
func (in *Inbox) buffer(index int) []byte {
	return in.memory[index*bufferSize : (index+1)*bufferSize : (index+1)*bufferSize]
}

// append adds the content of a buffer: its first length bytes, in segments of the given size or 0 for a single
// datagram. It returns the added message.
func (in *Inbox) append(peer netip.AddrPort, index, length, segment int) *Message {
	if segment <= 0 || segment > length {
		segment = length
	}
	in.messages = append(in.messages, Message{Peer: peer, Data: in.buffer(index)[:length:length], Segment: segment})
	return &in.messages[len(in.messages)-1]
}
