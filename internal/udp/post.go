package udp

import "sync"

// Buffer is memory for sent data: the size of the largest segmented send over IPv4.
type Buffer [maxPayloadIPv4]byte

var buffers = sync.Pool{New: func() any { return new(Buffer) }}

// NewBuffer returns a buffer with undefined content.
func NewBuffer() *Buffer { return buffers.Get().(*Buffer) }

// Release returns the buffer to the pool. The caller must not use it afterwards.
func (b *Buffer) Release() { buffers.Put(b) }

// postBytes is the number of bytes that a Post holds before it sends: recently written data is then still in the
// nearest cache of the processor. Longer runs do not benefit from waiting for each other.
const postBytes = 32 << 10

// Post collects the messages to several peers, so that one system call sends them: with a call of its own a run of five
// packets costs a quarter more (5.9 µs instead of 4.8, on one core). The zero Post is empty. It belongs to one
// goroutine at a time.
type Post struct {
	// bags are the messages by socket. The array keeps slices beyond its length for later messages.
	bags    []bag
	buffers []*Buffer
	bytes   int
	runs    int
}

// bag is the messages from one socket.
type bag struct {
	from     *Socket
	messages []Message
}

// Add adds messages, and takes ownership of the buffer that holds them. They leave from the socket when the Post is
// sent, or at once if the Post is full. If in is nil, the messages are in a buffer that a later Add passes.
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

// Empty reports whether no message is queued.
func (p *Post) Empty() bool { return p.runs == 0 }

// Send sends the queued messages. Messages that cannot be sent are lost, as on the network; sockets count them.
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
