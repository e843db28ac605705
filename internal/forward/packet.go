package forward

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/volsfu/volsfu/pkg/switching"
)

// The two sizes of buffer that hold a packet's payload. Most packets are full fragments; audio and the last fragments of frames are short.
const (
	// smallPayload holds 20 ms of Opus at 100 kbit/s.
	smallPayload = 256
	// maxPayload is above what fits an Ethernet frame (1,500 bytes less IP, UDP and RTP headers), and a size class of the allocator.
	maxPayload = 1536
)

// class says what a packet is counted as.
type class uint8

const (
	classMedia class = iota
	classParity
	classAudio
	classProbe
	classRetransmission
	classes
)

// packet is one RTP packet of one track, without its header. It is filled by the track's reader while nobody else can reach it, and does not
// change until its last reference is released; then the pool may give it to another track. Whoever comes by a pointer without owning a
// reference must therefore acquire one, and then look whether the packet is still the one that was meant.
type packet struct {
	references atomic.Int32
	class      class
	// edge says that the packet is at the beginning or the end of a frame of payload v1, or came late: of such packets frames' times are made.
	edge bool
	home *sync.Pool
	log  *packetLog
	// position is where the packet stands in its log.
	position int64
	// order is the time of arrival in nanoseconds since the engine's start, made strictly increasing within one ingress.
	order int64
	// ordinal counts the frames that the track has opened, up to and with this packet's arrival.
	ordinal int64
	// kernel and hardware are when kernel and network card received the packet, since the engine's start; 0 where they do not tell.
	kernel, hardware int64
	// due is when the packet is to leave by the pace of its frame, since the engine's start.
	due     time.Duration
	facts   switching.Packet
	payload []byte
	buffer  []byte
}

// packetOverhead is what a packet costs beside its buffer.
const packetOverhead = int64(unsafe.Sizeof(packet{}))

// size is the memory that the packet takes, in bytes.
func (p *packet) size() int64 { return int64(cap(p.buffer)) + packetOverhead }

// acquire takes a reference, unless the packet has none left and is on its way to the pool. All that is known after it returns true is that
// the packet will not change: it may be another than the one that was looked for.
func (p *packet) acquire() bool {
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

// ends tells whether the packet is the last of its frame, as far as it shows.
func (p *packet) ends() bool {
	return p.facts.Last || p.facts.Marker && !p.facts.Framed
}

// release gives a reference back, and with the last one the packet to its pool.
func (p *packet) release() {
	if p.references.Add(-1) == 0 {
		p.home.Put(p)
	}
}

// packetPool gives packets. What the garbage collector finds unused in it, it frees.
type packetPool struct {
	small sync.Pool
	large sync.Pool
}

func newPacketPool() *packetPool {
	pool := &packetPool{}
	pool.small.New = func() any { return &packet{home: &pool.small, buffer: make([]byte, smallPayload)} }
	pool.large.New = func() any { return &packet{home: &pool.large, buffer: make([]byte, maxPayload)} }
	return pool
}

// get gives a packet without references that holds a copy of the payload, which has at most maxPayload bytes.
func (pool *packetPool) get(payload []byte) *packet {
	home := &pool.large
	if len(payload) <= smallPayload {
		home = &pool.small
	}
	p := home.Get().(*packet)
	p.payload = p.buffer[:copy(p.buffer, payload)]
	return p
}
