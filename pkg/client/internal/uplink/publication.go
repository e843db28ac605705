package uplink

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// sizeShare is the weight of a frame in the mean size of its track's frames: a quarter of a second at 30 frames per
	// second. intervalShare is the weight of an interval.
	sizeShare     = 1. / 8
	intervalShare = 1. / 16
	// shortestInterval is the least time between two frames. Tiles that are captured within it belong to one frame:
	// cameras have 90 frames per second at most, and programs may stamp each tile by itself.
	shortestInterval = 4 * time.Millisecond
	// longestInterval is the least time that counts as a pause.
	longestInterval = time.Second
	// unknownInterval is the frame interval of a publication that does not state its rate: 30 frames per second.
	unknownInterval = time.Second / 30
)

// maxSpread bounds the time in which a frame leaves, however low the frame rate is: receivers expire a frame 150 ms
// after its first packet, and need two thirds of that for repairs. Down to 8 frames per second 0.4 of the interval is
// less.
const maxSpread = 50 * time.Millisecond

// packetTime is the time for each packet of a long frame, if the frame interval allows: 1,200 bytes in 40 µs are 240
// Mbit/s. A frame of 8 MB within maxSpread would be 7,000 packets at 1.3 Gbit/s. The 208 kB that Linux gives a socket
// by default hold 90 of them, so their reader may pause for 0.6 ms at most; with packetTime, it may pause for 3.6 ms.
const packetTime = 40 * time.Microsecond

// packetGap bounds the time between two packets of a frame: after 10 ms of silence (feedback.NACKConfig.TailWait) a
// receiver considers the rest of a frame lost and requests it. Two packets over 0.4 of a frame interval would be 13 ms
// apart at 30 frames per second.
const packetGap = 5 * time.Millisecond

const (
	// maxBudget bounds the time for which frames of slow publications wait for the uplink: at 10 frames per second it
	// is one interval.
	maxBudget = 100 * time.Millisecond
	// foreignBudget is the time for which frames of real video wait for the uplink. Each frame that is dropped costs
	// all frames up to the next key frame.
	foreignBudget = 500 * time.Millisecond
)

// Publication is one publication of this client: its tracks, and the lines that carry them. Tracks are numbered by tile
// × qualities + quality. The methods SetParity and Parity are safe for concurrent use.
type Publication struct {
	description volumetric.Publication
	// timestampBase is added to the RTP timestamps of all tracks: one random offset per publication.
	timestampBase uint32
	// spread is the time in which a frame leaves. longest is the limit for a frame of very many packets.
	spread, longest time.Duration
	// lines carry the tracks, nil while not negotiated.
	lines []*line
	// free is, for each tile, when the frames under way that leave in turn will have left.
	free   []time.Time
	tracks []trackState
	// lowestTaken reports for each tile whether a receiver takes the lowest quality. lowestTaken is nil if the server
	// does not report the state.
	lowestTaken []bool
	// interval is the measured time between two frames. latest is when the last frame was captured.
	interval time.Duration
	latest   time.Time
	// budget is how long a frame may wait for the uplink, 0 for no limit.
	budget time.Duration
	// parity is the share of parity packets that frames get, as the bits of a float64.
	parity atomic.Uint64
}

// trackState is the state of one track.
type trackState struct {
	// unwanted is set while no receiver takes the track, gaveUp while the uplink does not carry it.
	unwanted, gaveUp bool
	// size is the mean size of a frame on the wire, in bytes, 0 before the first frame.
	size float64
	// restart is set while the track is wanted again and has not been sent.
	restart restart
}

// NewPublication returns a publication without lines. spread is the part of the frame interval over which the packets
// of a frame are sent. budget is how long a frame may wait for the uplink, 0 for the default.
func NewPublication(description volumetric.Publication, spread float64, budget time.Duration) *Publication {
	interval := unknownInterval
	if description.FrameRate > 0 {
		interval = time.Duration(float64(time.Second) / description.FrameRate)
	}
	longest := time.Duration(spread * float64(interval))
	return &Publication{
		description:   description,
		timestampBase: rand.Uint32(),
		spread:        min(longest, maxSpread),
		longest:       longest,
		lines:         make([]*line, description.TrackCount()),
		free:          make([]time.Time, len(description.Tiles)),
		tracks:        make([]trackState, description.TrackCount()),
		interval:      interval,
		budget:        budgetOf(description, interval, budget),
	}
}

// NewPublicationAfter returns a publication for the uplink to another server, without lines. Receivers see one
// publication: the timestamps continue.
func NewPublicationAfter(former *Publication) *Publication {
	p := &Publication{
		description: former.description, timestampBase: former.timestampBase, spread: former.spread,
		longest: former.longest, lines: make([]*line, len(former.lines)), free: slices.Clone(former.free),
		tracks: make([]trackState, len(former.tracks)), interval: former.interval, latest: former.latest,
		budget: former.budget,
	}
	p.parity.Store(former.parity.Load())
	for i, t := range former.tracks {
		p.tracks[i] = trackState{unwanted: t.unwanted, size: t.size}
	}
	return p
}

// budgetOf returns how long a frame of a publication may wait for the uplink: by default one frame interval, since the
// next frame is there then. Audio always leaves.
func budgetOf(description volumetric.Publication, interval, configured time.Duration) time.Duration {
	switch {
	case description.Kind == volumetric.KindAudio:
		return 0
	case configured > 0:
		return configured
	case !description.Codec.Is(volumetric.MIMEVolumetric):
		return foreignBudget
	}
	return min(interval, maxBudget)
}

// Description returns the publication as it was published.
func (p *Publication) Description() volumetric.Publication { return p.description }

// Has reports whether the publication has a quality of a tile.
func (p *Publication) Has(tile int, quality volumetric.Quality) bool {
	return tile >= 0 && tile < len(p.description.Tiles) && quality >= 0 && quality <= p.description.Highest()
}

// Track returns the number of a track.
func (p *Publication) Track(tile int, quality volumetric.Quality) int {
	return tile*len(p.description.Qualities) + int(quality)
}

// own names a track.
func (p *Publication) own(track int) signal.OwnTrack {
	qualities := len(p.description.Qualities)
	return signal.OwnTrack{
		Publication: p.description.Name, Tile: track / qualities, Quality: volumetric.Quality(track % qualities),
	}
}

// tile returns the first track of a track's tile, and the track after its last.
func (p *Publication) tile(track int) (first, last int) {
	qualities := len(p.description.Qualities)
	first = track - track%qualities
	return first, first + qualities
}

// Negotiated reports whether a line carries the track.
func (p *Publication) Negotiated(track int) bool { return p.lines[track] != nil }

// Accepted reports whether the server takes the codec of the publication on the line of a negotiated track.
func (p *Publication) Accepted(track int) bool {
	_, _, ok := p.lines[track].outlet.PayloadType(p.description.Codec.MIMEType)
	return ok
}

// GaveUp reports whether the track is not sent because the uplink cannot carry it.
func (p *Publication) GaveUp(track int) bool { return p.tracks[track].gaveUp }

// Spread returns the time in which a frame of the given number of packets leaves.
func (p *Publication) Spread(packets int) time.Duration {
	return min(max(p.spread, time.Duration(packets)*packetTime), p.longest, time.Duration(packets-1)*packetGap)
}

// SpreadInTurn returns the time in which a frame leaves if the qualities of its tile leave one after the other.
func (p *Publication) SpreadInTurn() time.Duration {
	if p.description.Kind == volumetric.KindAudio {
		return 0
	}
	return p.spread / time.Duration(len(p.description.Qualities))
}

// Timestamp returns the RTP timestamp of a capture time by this host's clock. All tracks of the publication share it.
// It does not follow the server's clock: the estimate of that clock moves, also between two tiles of one frame. Sender
// reports relate the timestamp to the server's clock.
func (p *Publication) Timestamp(capture time.Time) uint32 {
	rate := int64(p.description.Codec.ClockRate)
	// Seconds and nanoseconds apart: together they would overflow 64 bits when multiplied by the rate.
	ticks := capture.Unix()*rate + int64(capture.Nanosecond())*rate/int64(time.Second)
	return p.timestampBase + uint32(ticks)
}

// SetParity sets the number of parity packets of the frames that are written from now on, as a share of their source
// packets, at most signal.MaxParity. NaN counts as 0.
func (p *Publication) SetParity(share float64) {
	if !(share > 0) {
		share = 0
	}
	p.parity.Store(math.Float64bits(min(share, signal.MaxParity)))
}

// Parity returns the number of parity packets of a frame of the given number of source packets. A server forwards the
// same number for the same share, so no receiver has fewer parity packets than it needs.
func (p *Publication) Parity(source int) int {
	// A share like 0.07 is slightly larger in binary. The result for 100 packets must still be 7.
	const rounding = 1e-9
	share := math.Float64frombits(p.parity.Load())
	return min(int(math.Ceil(share*float64(source)-rounding)), payload.MaxParity(source))
}

// FrameSize returns the size on the wire, in bytes, of a frame of payload v1. length includes the prefix. parity is the
// number of parity packets.
func FrameSize(length, parity int) int {
	return length + payload.SourceFragments(length)*(payload.DescriptorSize+congestion.PacketOverhead) +
		parity*(payload.MaxPacketSize+congestion.PacketOverhead)
}

// PacketsSize returns the size of RTP payloads on the wire, in bytes.
func PacketsSize(payloads [][]byte) int {
	size := len(payloads) * congestion.PacketOverhead
	for _, body := range payloads {
		size += len(body)
	}
	return size
}

// rate returns the measured rate of the track on the wire in bit/s or, before the first frame, the announced rate. It
// is 0 if neither is known.
func (p *Publication) rate(track int) float64 {
	if size := p.tracks[track].size; size > 0 {
		return 8 * size / p.interval.Seconds()
	}
	const packet = payload.FragmentSize + payload.DescriptorSize
	nominal := float64(p.description.Qualities[track%len(p.description.Qualities)].Bitrate)
	return nominal * (packet + congestion.PacketOverhead) / packet
}

// measure measures a frame, whether or not it is sent: its size on the wire in bytes, and its capture time.
func (p *Publication) measure(track int, capture time.Time, size int) {
	t := &p.tracks[track]
	if t.size == 0 {
		t.size = float64(size)
	} else {
		t.size += (float64(size) - t.size) * sizeShare
	}
	// The interval is that of all captures of the publication. A track that pauses does not change it.
	passed := capture.Sub(p.latest)
	if !p.latest.IsZero() && passed < shortestInterval {
		return
	}
	if !p.latest.IsZero() && passed < longestInterval {
		// A missing frame must not look like a lower frame rate.
		p.interval += time.Duration(float64(min(passed, 2*p.interval)-p.interval) * intervalShare)
	}
	p.latest = capture
}
