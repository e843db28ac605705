package packetlog

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/volsfu/volsfu/pkg/switching"
)

// The two sizes of buffers for payloads. Most packets are full fragments. Audio and the last fragments of frames are
// short.
const (
	// smallPayload holds 20 ms of Opus at 100 kbit/s.
	smallPayload = 256
	// MaxPayload is above what fits an Ethernet frame (1,500 bytes less IP, UDP and RTP headers), and a size class of
	// the allocator.
	MaxPayload = 1536
)

// Class is the kind that a packet counts as.
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
// goroutine can reach the packet. From then on the packet does not change until its last reference is released. Then
// the pool may give the packet to another track: a goroutine that has a pointer without a reference must acquire one,
// and then check that the packet is still the one it looked for.
type Packet struct {
	references atomic.Int32
	Class      Class
	// Edge is set if the packet is the first or the last one of a frame of payload v1, or came late. Only such packets
	// count for the times of frames.
	Edge bool
	home *sync.Pool
	log  *Log
	// Position is the packet's position in its log.
	Position int64
	// Order is the time of arrival in nanoseconds since the engine's start, made strictly increasing within one
	// ingress.
	Order int64
	// Ordinal counts the frames that the track has opened, up to and with this packet's arrival.
	Ordinal int64
	// Kernel and Hardware are when kernel and network card received the packet, in nanoseconds since the engine's
	// start, 0 if unknown.
	Kernel, Hardware int64
	// Due is when the packet leaves by the pace of its frame, since the engine's start.
	Due     time.Duration
	Facts   switching.Packet
	Payload []byte
	buffer  []byte
}

// Overhead is the memory of a packet beside its buffer, in bytes.
const Overhead = int64(unsafe.Sizeof(Packet{}))

// Size is the memory of the packet, in bytes.
func (p *Packet) Size() int64 { return int64(cap(p.buffer)) + Overhead }

// Acquire takes a reference, unless the packet has none left and is on its way to the pool. After Acquire returns true
// the packet does not change, but it may be another one than the caller looked for.
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

// Frame names the packet's frame within its track: by its number, or else by the RTP timestamp.
func (p *Packet) Frame() int64 {
	if p.Facts.Framed {
		return p.Facts.Frame
	}
	return int64(p.Facts.Timestamp)
}

// Place orders the packets of a track by what they can begin: by frame number, or else by sequence number.
func (p *Packet) Place() int64 {
	if p.Facts.Framed {
		return p.Facts.Frame
	}
	return p.Facts.Sequence
}

// Ends reports whether the packet is known to be the last one of its frame.
func (p *Packet) Ends() bool {
	return p.Facts.Last || p.Facts.Marker && !p.Facts.Framed
}

// Retain takes one more reference for a caller that owns one.
func (p *Packet) Retain() { p.references.Add(1) }

// References is the number of references to the packet.
func (p *Packet) References() int32 { return p.references.Load() }

// Release gives a reference back, and with the last one the packet to its pool.
func (p *Packet) Release() {
	if p.references.Add(-1) == 0 {
		p.home.Put(p)
	}
}

// Pool has packets for reuse. The garbage collector frees those that are not used.
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

// Get returns a packet without references that holds a copy of the payload, which has at most MaxPayload bytes.
func (pool *Pool) Get(payload []byte) *Packet {
	home := &pool.large
	if len(payload) <= smallPayload {
		home = &pool.small
	}
	p := home.Get().(*Packet)
	p.Payload = p.buffer[:copy(p.buffer, payload)]
	return p
}
