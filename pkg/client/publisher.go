package client

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/pkg/client/internal/frametrace"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Publisher sends the frames of one publication. Its methods are safe for concurrent use; frames of one tile at one quality must come in
// the order of their numbers.
type Publisher struct {
	session     *Session
	publication volumetric.Publication
	// timestampBase is added to the RTP timestamps of all tracks: one random offset per publication.
	timestampBase uint32
	// spread is how long a frame takes to leave; one of very many packets takes up to longest.
	spread, longest time.Duration
	// lines are where tracks are sent, by tile × qualities + quality, nil while not negotiated. They belong to media's lock.
	lines []*line
	// free says for each tile when the frames under way that leave in turn will have left. It belongs to media's lock.
	free []time.Time
	// tracks are what is known of the tracks, interval is the time between two frames, as it is measured, and latest when the last one was captured. They
	// belong to media's lock.
	tracks   []trackState
	interval time.Duration
	latest   time.Time
	// budget is how long a frame may wait for the uplink, 0 for ever.
	budget time.Duration
	// parity is the share of parity packets that frames get, as the bits of a float64.
	parity atomic.Uint64
}

// OutgoingFrame is one encoded tile at one quality.
type OutgoingFrame struct {
	// Number counts capture instants: the same for all tiles and qualities of one, and one more for the next that is published.
	Number uint32
	// Capture is when it was captured, by this host's clock.
	Capture time.Time
	// Codec names what Data is encoded with. In a publication that is marked VR2Gather it is not looked at.
	Codec volumetric.FourCC
	// Data is the encoded tile, empty where the tile has no points. In a publication that is marked VR2Gather it begins with VR2Gather's header, and is sent
	// as it is. It is copied.
	Data []byte
	// Stages are when the stages before were reached, for frame times.
	Stages Stages
}

// unknownInterval is taken for the frame interval of a publication that does not state its rate: 30 frames per second.
const unknownInterval = time.Second / 30

// maxSpread bounds how long a frame takes to leave, however slow its publication is: receivers give a frame up 150 ms after its first packet, and
// need two thirds of that for repairs. Down to 8 frames per second 0.4 of the interval is less.
const maxSpread = 50 * time.Millisecond

// packetTime is what each packet of a long frame is given, where the frame interval allows: 1,200 bytes in 40 µs are 240 Mbit/s. A frame of 8 MB
// within maxSpread would be 7,000 packets at 1.3 Gbit/s: the 208 kB that Linux gives a socket by default hold 90 of them, which its reader may then not pause for
// longer than 0.6 ms, and here 3.6 ms.
const packetTime = 40 * time.Microsecond

// packetGap bounds the time between two packets of a frame: after 10 ms of silence (feedback.NACKConfig.TailWait) a receiver takes the rest of a frame
// for lost and asks for it. Two packets over 0.4 of a frame interval would be 13 ms apart at 30 frames per second.
const packetGap = 5 * time.Millisecond

func newPublisher(s *Session, publication volumetric.Publication) *Publisher {
	interval := unknownInterval
	if publication.FrameRate > 0 {
		interval = time.Duration(float64(time.Second) / publication.FrameRate)
	}
	longest := time.Duration(s.config.Spread * float64(interval))
	return &Publisher{
		session:       s,
		publication:   publication,
		timestampBase: rand.Uint32(),
		spread:        min(longest, maxSpread),
		longest:       longest,
		lines:         make([]*line, publication.TrackCount()),
		free:          make([]time.Time, len(publication.Tiles)),
		tracks:        make([]trackState, publication.TrackCount()),
		interval:      interval,
		budget:        budgetOf(publication, interval, s.config.QueueBudget),
	}
}

// spreadOf is how long a frame of so many packets takes to leave.
func (p *Publisher) spreadOf(packets int) time.Duration {
	return min(max(p.spread, time.Duration(packets)*packetTime), p.longest, time.Duration(packets-1)*packetGap)
}

// Publication is the description that was published.
func (p *Publisher) Publication() volumetric.Publication { return p.publication }

func (p *Publisher) has(tile int, quality volumetric.Quality) bool {
	return tile >= 0 && tile < len(p.publication.Tiles) && quality >= 0 && quality <= p.publication.Highest()
}

func (p *Publisher) index(tile int, quality volumetric.Quality) int {
	return tile*len(p.publication.Qualities) + int(quality)
}

// WriteFrame sends one frame as payload v1, spread over part of the frame interval. ErrNotConnected says that it was not sent, since the
// track is not negotiated yet or the connection is down.
//
// It is taken where it will leave, unless it waits for the uplink for too long (UplinkCounts.Dropped). Where it is not, and there is no error, nobody takes the track, or the uplink
// does not carry it: the frame is counted (UplinkCounts.Paused, GivenUp) and not sent.
func (p *Publisher) WriteFrame(tile int, quality volumetric.Quality, f OutgoingFrame) (taken bool, err error) {
	if !p.has(tile, quality) {
		return false, fmt.Errorf("%w: %q tile %d quality %d", ErrNotPublished, p.publication.Name, tile, quality)
	}
	prefixed, length := !p.publication.VR2Gather, len(f.Data)
	if prefixed {
		length += payload.PrefixSize
	}
	parity := p.parityOf(payload.SourceFragments(length))
	size := frameSize(length) + parity*(payload.MaxPacketSize+congestion.PacketOverhead)
	if taken, err := p.takes(p.index(tile, quality), f.Capture, size); !taken {
		return false, err
	}
	data := f.Data
	if prefixed {
		prefix := payload.Prefix{FourCC: f.Codec, Capture: p.session.media.serverTime(f.Capture)}
		data = append(prefix.AppendTo(make([]byte, 0, length)), f.Data...)
	}
	descriptor := payload.Descriptor{Prefixed: prefixed, Quality: uint8(quality), Parity: uint16(parity), Frame: f.Number}
	payloads, err := fragment(descriptor, data)
	if err != nil {
		return false, fmt.Errorf("%q tile %d quality %d: %w", p.publication.Name, tile, quality, err)
	}
	err = p.session.media.enqueue(p, p.index(tile, quality), f.Capture, payloads, p.spreadOf(len(payloads)), false, p.times(tile, quality, &f))
	return err == nil, err
}

// times are those of a frame, nil where frames are not traced.
func (p *Publisher) times(tile int, quality volumetric.Quality, f *OutgoingFrame) *frametrace.Sent {
	if !p.session.media.tracing.TracesSent() {
		return nil
	}
	return &frametrace.Sent{
		Publication: p.publication.Name, Tile: tile, Quality: quality, Number: f.Number,
		Bytes: len(f.Data), Capture: f.Capture, Stages: frametrace.Stages(f.Stages),
	}
}

// WritePackets sends the RTP payloads of one frame of a codec that does not use payload v1, such as Opus or H264. The last has the marker
// where the publication is video. The payloads must not change afterwards. Whether it is taken is told as by WriteFrame.
//
// The qualities of a tile leave one after the other, not interleaved as with WriteFrame: without a descriptor nobody knows where a frame
// ends before its last packet, so the server could not switch between frames that overlap.
func (p *Publisher) WritePackets(tile int, quality volumetric.Quality, capture time.Time, payloads [][]byte) (taken bool, err error) {
	if !p.has(tile, quality) {
		return false, fmt.Errorf("%w: %q tile %d quality %d", ErrNotPublished, p.publication.Name, tile, quality)
	}
	if taken, err := p.takes(p.index(tile, quality), capture, packetsSize(payloads)); !taken {
		return false, err
	}
	spread := p.spread / time.Duration(len(p.publication.Qualities))
	if p.publication.Kind == volumetric.KindAudio {
		spread = 0
	}
	err = p.session.media.enqueue(p, p.index(tile, quality), capture, payloads, spread, true, nil)
	return err == nil, err
}

// detach forgets the lines of a publication that has ended.
func (p *Publisher) detach() { p.session.media.detach(p) }

// timestamp is the RTP timestamp of a capture time by this host's clock, which all tracks of the publication share. It must not follow the server's
// clock: the estimate of that one moves, also between two tiles of one frame. Sender reports say what the server's clock showed.
func (p *Publisher) timestamp(capture time.Time) uint32 {
	rate := int64(p.publication.Codec.ClockRate)
	// Seconds and nanoseconds apart: together they would overflow 64 bits when multiplied by the rate.
	ticks := capture.Unix()*rate + int64(capture.Nanosecond())*rate/int64(time.Second)
	return p.timestampBase + uint32(ticks)
}
