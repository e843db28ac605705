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

// Injector feeds a track with whole frames that arrive over a transport other than RTP, as if the publisher had sent
// the frames in packets. The rest of the path is the same. One goroutine at a time uses the Injector.
type Injector struct {
	ingress    *Ingress
	header     rtp.Header
	fragmenter payload.Fragmenter
	packet     [rtpHeader + payload.MaxPacketSize]byte

	// mu guards the fields below. A goroutine may lock mu with the ingress's mutex held, but not the other way round.
	mu sync.Mutex
	// assembler reassembles chunked frames. ended is set when the track is bound to something else or unbound.
	assembler *payload.ChunkAssembler
	ended     bool
}

// rtpHeader is the size in bytes of an RTP header without extensions (RFC 3550 section 5.1).
const rtpHeader = 12

// NewInjector binds a track to injected frames, as Bind does. Chunked frames are at most limit bytes long.
func (i *Ingress) NewInjector(t *track.Track, limit int) *Injector {
	j := &Injector{
		ingress: i, header: rtp.Header{Version: 2, SSRC: rand.Uint32(), SequenceNumber: uint16(rand.Uint32())},
		assembler: payload.NewChunkAssembler(limit),
	}
	j.assembler.Charge(i.chunks)
	if !i.takeovers.add(&waiting{track: t, ssrc: j.header.SSRC, injector: j}) {
		j.end()
	}
	return j
}

// Chunk adds a chunk of a frame, and sends the frame when it is complete. Chunks of other incomplete frames are kept
// until no chunk of a frame has arrived for one to two seconds, within the memory that all publishers share. Errors
// describe the invalid chunk or frame.
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

// sweep discards frames whose chunks no longer arrive. sweep does nothing while a chunk is being added.
func (j *Injector) sweep() {
	if j.mu.TryLock() {
		defer j.mu.Unlock()
		j.assembler.Sweep()
	}
}

// end discards all incomplete frames.
func (j *Injector) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ended = true
	j.assembler.Clear()
}

// Frame sends a frame. The descriptor holds the quality, the number, and whether the data begins with a prefix. Errors
// describe the invalid frame.
func (j *Injector) Frame(d payload.Descriptor, data []byte, timestamp uint32, now time.Time) error {
	if err := j.fragmenter.Begin(d, data); err != nil {
		return err
	}
	// The caller owns the memory of the frame again.
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
			panic("the buffer has no room for an RTP header without extensions: " + err.Error())
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
