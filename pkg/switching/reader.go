package switching

import (
	"strings"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// clockTolerance is the tolerated difference between the timestamps of one track and the
	// elapsed time.
	clockTolerance = 10 * time.Second
	// sameFrames is the maximum distance between the frame numbers of two tracks of one
	// publication: 10 s at 30 frames per second.
	sameFrames = 300
)

// codec describes how packets of a media type are read.
type codec struct {
	mimeType      string
	rate          float64
	framed, audio bool
	needsKey      bool
}

func newCodec(mimeType string, clockRate uint32) codec {
	if clockRate == 0 {
		clockRate = DefaultClockRate
	}
	return codec{
		mimeType: mimeType,
		rate:     float64(clockRate),
		framed:   strings.EqualFold(mimeType, volumetric.MIMEVolumetric),
		audio:    strings.HasPrefix(strings.ToLower(mimeType), "audio/"),
		needsKey: NeedsKey(mimeType),
	}
}

// reader determines the facts about the packets of one track, in the order in which the application
// writes them.
type reader struct {
	codec  codec
	source Source
	// State of the newest packet: its extended number, timestamp and time.
	started   bool
	sequence  int64
	timestamp uint32
	at        time.Time
	// prelude reports that the current frame so far contains nothing to decode, only units that
	// H.264 permits before a parameter set.
	prelude bool
	// frame is the newest frame, valid if framed is set.
	framed  bool
	frame   int64
	quality uint8
}

// continues reports whether the packet appears to belong to this track: its number is within jump
// of the newest, its timestamp differs by no more than the elapsed time plus clockTolerance, its
// quality is the same, and its frame number is near.
func (r *reader) continues(h *rtp.Header, d *payload.Descriptor, jump int, now time.Time) bool {
	if abs(int32(int16(h.SequenceNumber-uint16(r.sequence)))) > int64(jump) {
		return false
	}
	if d != nil && r.framed && (d.Quality != r.quality || abs(int32(d.Frame-uint32(r.frame))) > sameFrames) {
		return false
	}
	return r.near(h, now.Sub(r.at)+clockTolerance)
}

// near reports whether the packet's timestamp is within the given time of the newest timestamp.
func (r *reader) near(h *rtp.Header, within time.Duration) bool {
	return float64(abs(int32(h.Timestamp-r.timestamp))) <= within.Seconds()*r.codec.rate
}

func abs(n int32) int64 { return max(int64(n), -int64(n)) }

// newer reports whether the packet is newer than the newest packet of this track.
func (r *reader) newer(h *rtp.Header) bool { return int16(h.SequenceNumber-uint16(r.sequence)) > 0 }

// follows prepares the reader of a track that takes over from another track, or from none, with its
// first packet. If both tracks belong to one publication, they share frame numbers and timestamps.
func (r *reader) follows(before *reader, h *rtp.Header, d *payload.Descriptor) {
	r.sequence = int64(h.SequenceNumber)
	if before == nil || d == nil || !before.framed {
		return
	}
	if distance := int32(
		d.Frame - uint32(before.frame),
	); abs(distance) <= sameFrames &&
		before.near(h, clockTolerance) {
		r.framed, r.frame = true, before.frame+int64(distance)
		r.source.Group = before.source.Group
	}
}

// read determines the facts about a packet. If the reader starts in the middle of a track, opening
// reports whether its first packet may begin a frame whatever its payload.
func (r *reader) read(h *rtp.Header, body []byte, d *payload.Descriptor, opening bool, now time.Time) Packet {
	step := int64(int16(h.SequenceNumber - uint16(r.sequence)))
	p := Packet{
		Track: r.source.Track, Sequence: r.sequence + step, Timestamp: h.Timestamp, Marker: h.Marker,
		Key: KeyFrame(r.codec.mimeType, body),
	}
	first := !r.started
	switch {
	case d != nil:
		r.readFrame(&p, d, first && opening)
	case first:
		p.Opens = opening || r.codec.audio || r.codec.needsKey && p.Key
	case step <= 0 || len(body) == 0:
	case r.codec.audio:
		p.Opens = true
	case h.Timestamp != r.timestamp:
		// After a gap the beginning of the frame may be among the missing packets, unless the
		// payload shows that it is not.
		p.Opens = step == 1 || r.codec.needsKey && p.Key
	default:
		p.Opens = r.prelude && p.Key
	}
	if first || step > 0 {
		r.prelude = r.codec.needsKey && preludeH264(r.codec.mimeType, body) && (r.prelude || p.Opens)
		if first || len(body) > 0 {
			r.timestamp = h.Timestamp // padding may have the timestamp of a future frame
		}
		r.started, r.sequence, r.at = true, p.Sequence, now
	}
	return p
}

// readFrame sets the facts from the descriptor of payload v1.
func (r *reader) readFrame(p *Packet, d *payload.Descriptor, opening bool) {
	first := !r.started || !r.framed
	if !r.framed {
		r.framed, r.frame = true, int64(d.Frame)
	}
	p.Framed = true
	p.Frame = r.frame + int64(int32(d.Frame-uint32(r.frame)))
	p.FrameStart = p.Sequence - int64(d.Index)
	// SourcePackets stays 0: the application decides how much parity it writes, and all of it is
	// forwarded.
	p.FramePackets = d.Packets()
	p.Last = int(d.Index) == d.Packets()-1
	// The beginning of the first frame seen was written before this track took over.
	p.Opens = p.Frame > r.frame || opening || first && d.Index == 0
	r.frame, r.quality = max(r.frame, p.Frame), d.Quality
}

// preludeH264 reports whether the packet contains an access unit delimiter or supplemental
// enhancement information, which may precede a parameter set.
func preludeH264(mimeType string, body []byte) bool {
	const sei, delimiter = 6, 9
	return strings.EqualFold(mimeType, volumetric.MIMEH264) && len(body) > 0 &&
		(nalType(body[0]) == sei || nalType(body[0]) == delimiter)
}
