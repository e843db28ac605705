package ingress

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/payload"
)

// Injector feeds a track with whole frames that came by another way than RTP, as if its publisher had sent them in
// packets: everything behind it is the same. It is for one goroutine at a time.
type Injector struct {
	ingress    *Ingress
	header     rtp.Header
	fragmenter payload.Fragmenter
	packet     [rtpHeader + payload.MaxPacketSize]byte

	// mu guards what follows. It may be taken by who has the ingress's mutex, and not the other way round.
	mu sync.Mutex
	// assembler puts frames together that come in chunks. ended says that the track is bound to something else, or to
	// nothing.
	assembler *payload.ChunkAssembler
	ended     bool
}

// rtpHeader is the size in bytes of an RTP header without extensions (RFC 3550 section 5.1).
const rtpHeader = 12

// NewInjector binds a track to frames that are injected, in place of what it was bound to. Those that come in chunks
// are at most limit bytes long.
func (i *Ingress) NewInjector(t *track.Track, limit int) *Injector {
	j := &Injector{
		ingress: i, header: rtp.Header{Version: 2, SSRC: rand.Uint32(), SequenceNumber: uint16(rand.Uint32())},
		assembler: payload.NewChunkAssembler(limit),
	}
	j.assembler.Charge(i.chunks)
	i.Bind(j.header.SSRC, 0, t)
	i.mu.Lock()
	defer i.mu.Unlock()
	if s := i.streams[j.header.SSRC]; s != nil {
		s.injector = j
	} else {
		j.ended = true
	}
	return j
}

// Chunk takes a chunk of a frame, and sends the frame once it is whole. What comes of other frames meanwhile is kept,
// until nothing has come of one for a second or two, as far as all publishers together leave room for it. Errors say
// what is wrong with the chunk or the frame.
func (j *Injector) Chunk(c *payload.Chunk, now time.Time) error {
	frame, whole, err := j.assemble(c)
	if err != nil || !whole {
		return err
	}
	err = j.Frame(payload.Descriptor{Prefixed: frame.Prefixed, Quality: frame.Quality, Frame: frame.Frame}, frame.Data,
		frame.Timestamp, now)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.assembler.Done()
	return err
}

func (j *Injector) assemble(c *payload.Chunk) (frame payload.Chunk, whole bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended {
		return frame, false, nil
	}
	return j.assembler.Take(c)
}

// sweep gives up frames of which nothing comes any more. One that a chunk is being taken of is none of them.
func (j *Injector) sweep() {
	if j.mu.TryLock() {
		defer j.mu.Unlock()
		j.assembler.Sweep()
	}
}

// end gives up all that is not whole.
func (j *Injector) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ended = true
	j.assembler.Clear()
}

// Frame sends a frame whose descriptor names its quality, its number, and whether its data begins with a prefix. Errors
// say what is wrong with the frame.
func (j *Injector) Frame(d payload.Descriptor, data []byte, timestamp uint32, now time.Time) error {
	if err := j.fragmenter.Begin(d, data); err != nil {
		return err
	}
	// The frame's memory is its owner's again.
	defer j.fragmenter.Release()
	packets := j.fragmenter.Packets()
	if packets > maxFramePackets {
		return fmt.Errorf("%w: %d packets, expected at most %d", payload.ErrFrame, packets, maxFramePackets)
	}
	j.header.Timestamp = timestamp
	info := transport.PacketInfo{At: now}
	for n := range packets {
		j.header.Marker = n == packets-1
		size, err := j.header.MarshalTo(j.packet[:])
		if err != nil {
			panic("a header without extensions has room for itself: " + err.Error())
		}
		packet, err := j.fragmenter.AppendPacket(j.packet[:size], n)
		if err != nil {
			return err
		}
		j.header.SequenceNumber++
		j.ingress.RTP(j.header.SSRC, packet, &info)
	}
	j.ingress.Flush()
	return nil
}
