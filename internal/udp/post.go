package udp

import "sync"

// Buffer is memory for what is sent: as much as one segmented send takes over IPv4.
type Buffer [maxPayloadIPv4]byte

var buffers = sync.Pool{New: func() any { return new(Buffer) }}

// NewBuffer gives a buffer with anything in it.
func NewBuffer() *Buffer { return buffers.Get().(*Buffer) }

// Release gives the buffer back, which is not used afterwards.
func (b *Buffer) Release() { buffers.Put(b) }

// postBytes is what a Post holds before it sends: what was just written is then still in a processor's nearest cache. Longer runs gain nothing by waiting for each other.
const postBytes = 32 << 10

// Post collects what several peers are sent at one time, so that a system call takes it all: a call of its own makes a run of five packets dearer by a quarter (5.9 µs instead of 4.8, on one core).
// The zero Post is empty. It belongs to one goroutine at a time.
type Post struct {
	// bags are the messages by socket. Beyond their length the array keeps slices for messages to come.
	bags    []bag
	buffers []*Buffer
	bytes   int
	runs    int
}

// bag is what leaves from one socket.
type bag struct {
	from     *Socket
	messages []Message
}

// Add takes messages, and the buffer that they are in, which is no more the caller's. They leave from the socket when the
// Post is sent, or at once if that makes enough. Without a buffer the messages are in one that the next Add brings.
func (p *Post) Add(from *Socket, messages []Message, in *Buffer) {
	i := 0
	for i < len(p.bags) && p.bags[i].from != from {
		i++
	}
	if i == len(p.bags) {
		if i == cap(p.bags) {
			p.bags = append(p.bags, bag{})
		}
		p.bags = p.bags[:i+1]
		p.bags[i].from = from
	}
	b := &p.bags[i]
	b.messages = append(b.messages, messages...)
	for _, m := range messages {
		p.bytes += len(m.Data)
	}
	p.runs += len(messages)
	if in != nil {
		p.buffers = append(p.buffers, in)
	}
	if p.bytes >= postBytes || p.runs >= callLength {
		p.Send()
	}
}

// Empty tells whether nothing waits.
func (p *Post) Empty() bool { return p.runs == 0 }

// Send sends what waits. What cannot be sent is lost, as it might be on the network; sockets count it.
func (p *Post) Send() {
	if p.Empty() {
		return
	}
	for i := range p.bags {
		b := &p.bags[i]
		_ = b.from.Send(b.messages)
		clear(b.messages)
		b.from, b.messages = nil, b.messages[:0]
	}
	p.bags = p.bags[:0]
	for i, buffer := range p.buffers {
		buffer.Release()
		p.buffers[i] = nil
	}
	p.buffers, p.bytes, p.runs = p.buffers[:0], 0, 0
}
