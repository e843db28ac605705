package packetlog

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/volsfu/volsfu/pkg/switching"
)

// The two sizes of payload buffers. Most packets are full fragments. Audio and the last fragments of frames are short.
const (
	// smallPayload holds 20 ms of Opus at 100 kbit/s.
	smallPayload = 256
	// MaxPayload exceeds the payload of an Ethernet frame (1,500 bytes less IP, UDP and RTP headers) and is a size
	// class of the allocator.
	MaxPayload = 1536
)

// Class is the kind under which a packet is counted.
type Class uint8

// The classes.
const (
	Media Class = iota
	// Parity is the redundancy of payload v1.
	Parity
	Audio
	// Probe is padding.
	Probe
	Retransmission
	// Classes is the number of classes.
	Classes
)

// Packet is one RTP packet of one track, without its header. The track's reader fills the packet while no other
// goroutine can reach the packet. After that the packet does not change until its last reference is released. Then the
// pool may reuse the packet for another track. A goroutine with a pointer but no reference must acquire a reference and
// then check that the packet is still the expected one.
type Packet struct {
	references atomic.Int32
	Class      Class
	// Edge is set if the packet is the first or the last packet of a frame of payload v1, or was late. Only such
	// packets count for the times of frames.
	Edge bool
	home *sync.Pool
	log  *Log
	// Position is the position of the packet in its log.
	Position int64
	// Order is the arrival time in nanoseconds since the engine's start, made strictly increasing within one ingress.
	Order int64
	// Ordinal is the number of frames that the track had opened when the packet arrived, including the packet's own.
	Ordinal int64
	// Origin is 0 if the packet came from the publisher's own connection, otherwise the number that the binding of the
	// track to another server's connection has.
	Origin uint32
	// Kernel and Hardware are the receive times of the kernel and the network card, in nanoseconds since the engine's
	// start, 0 if unknown.
	Kernel, Hardware int64
	// Due is the time at which the packet leaves by the schedule of its frame, since the engine's start.
	Due     time.Duration
	Facts   switching.Packet
	Payload []byte
	buffer  []byte
}

// Overhead is the memory of a packet without its buffer, in bytes.
const Overhead = int64(unsafe.Sizeof(Packet{}))

// Size returns the memory of the packet in bytes.
func (p *Packet) Size() int64 { return int64(cap(p.buffer)) + Overhead }

// Acquire takes a reference and reports whether it did. Acquire fails if the packet has no reference left and is on its
// way to the pool. After Acquire returns true the packet does not change, but may be another packet than the caller
// looked for.
func (p *Packet) Acquire() bool {
	for {
		n := p.references.Load()
		if n <= 0 {
			return false
		}
		if p.references.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Frame returns the identifier of the packet's frame within its track: the frame number, or the RTP timestamp if the
// track has no frame numbers.
func (p *Packet) Frame() int64 {
	if p.Facts.Framed {
		return p.Facts.Frame
	}
	return int64(p.Facts.Timestamp)
}

// Place returns the order of the packet among the possible starting points of a track: the frame number, or the
// sequence number if the track has no frame numbers.
func (p *Packet) Place() int64 {
	if p.Facts.Framed {
		return p.Facts.Frame
	}
	return p.Facts.Sequence
}

// Ends reports whether the packet is known to be the last packet of its frame.
func (p *Packet) Ends() bool {
	return p.Facts.Last || p.Facts.Marker && !p.Facts.Framed
}

// Retain adds a reference. The caller owns a reference already.
func (p *Packet) Retain() { p.references.Add(1) }

// References returns the number of references to the packet.
func (p *Packet) References() int32 { return p.references.Load() }

// Release releases a reference. With the last reference the packet returns to its pool.
func (p *Packet) Release() {
	if p.references.Add(-1) == 0 {
		p.home.Put(p)
	}
}

// Pool holds packets for reuse. The garbage collector frees unused packets.
type Pool struct {
	small sync.Pool
	large sync.Pool
}

// NewPool returns an empty pool.
func NewPool() *Pool {
	pool := &Pool{}
	pool.small.New = func() any { return &Packet{home: &pool.small, buffer: make([]byte, smallPayload)} }
	pool.large.New = func() any { return &Packet{home: &pool.large, buffer: make([]byte, MaxPayload)} }
	return pool
}

// Get returns a packet without references that holds a copy of the payload of at most MaxPayload bytes.
func (pool *Pool) Get(payload []byte) *Packet {
	home := &pool.large
	if len(payload) <= smallPayload {
		home = &pool.small
	}
	p := home.Get().(*Packet)
	p.Payload = p.buffer[:copy(p.buffer, payload)]
	return p
}
