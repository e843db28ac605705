// Package injection makes RTP packets of whole frames that arrive over a transport other than RTP: over the data
// channel of a publisher, in chunks.
package injection

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

// Sink receives the packets of an injector, as those of a publisher's connection (ingress.Ingress).
type Sink interface {
	RTP(ssrc uint32, packet []byte, info *transport.PacketInfo)
	Flush()
}

// Injector feeds a track with whole frames that arrive over a transport other than RTP, as if the publisher had sent
// the frames in packets. The rest of the path is the same. One goroutine at a time uses the Injector.
type Injector struct {
	to         Sink
	header     rtp.Header
	fragmenter payload.Fragmenter
	packet     [rtpHeader + payload.MaxPacketSize]byte
	info       transport.PacketInfo

	// mu guards the fields below. No method of the Sink is called with mu held.
	mu sync.Mutex
	// assembler reassembles chunked frames. ended is set by End.
	assembler *payload.ChunkAssembler
	ended     bool
}

// rtpHeader is the size in bytes of an RTP header without extensions (RFC 3550 section 5.1).
const rtpHeader = 12

// New returns an injector with an SSRC of its own. Chunked frames are at most limit bytes long. Their memory counts
// against the budget.
func New(to Sink, budget payload.ChunkBudget, limit int) *Injector {
	j := &Injector{
		to: to, header: rtp.Header{Version: 2, SSRC: rand.Uint32(), SequenceNumber: uint16(rand.Uint32())},
		assembler: payload.NewChunkAssembler(limit),
	}
	j.assembler.Charge(budget)
	return j
}

// SSRC returns the SSRC of the injector's packets.
func (j *Injector) SSRC() uint32 { return j.header.SSRC }

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

// Sweep discards frames of which no chunk has arrived since the last call. Sweep does nothing while a chunk is being
// added.
func (j *Injector) Sweep() {
	if j.mu.TryLock() {
		defer j.mu.Unlock()
		j.assembler.Sweep()
	}
}

// End ends the injector, because its track is unbound or bound to something else. End discards all incomplete
// frames.
func (j *Injector) End() {
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
	if packets > track.MaxFramePackets {
		return fmt.Errorf("%w: %d packets, expected at most %d", payload.ErrFrame, packets, track.MaxFramePackets)
	}
	j.header.Timestamp = timestamp
	j.info = transport.PacketInfo{At: now}
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
		j.to.RTP(j.header.SSRC, packet, &j.info)
	}
	j.to.Flush()
	return nil
}
