package ingress

import (
	"fmt"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// A track of a VR2Gather peer comes in packets of VR2Gather's own. Its reader turns those of video into payload v1 as
// they arrive, one into one and in place: both cut frames after every 1,144 bytes, so that all behind the reader knows
// nothing of the difference. What it has to make up is what the peer does not tell: frame numbers and timestamps that
// all tracks of the publication share. Both follow from the capture time that the frame's own header names. Packets of
// sound stay as they are.

// videoTicks and audioTicks are how many ticks of their clocks, of 90 kHz and of 48 kHz, a millisecond has.
const (
	videoTicks = 90
	audioTicks = 48
)

const (
	// keptInstants is how many capture instants are remembered for tiles and qualities that are encoded later than
	// others: a second at 60 frames per second.
	keptInstants = 64
	// keptFrames is how many frames of a track are remembered for packets that come late.
	keptFrames = 8
	// mappingInterval is how often the capture times of a track are noted for sender reports.
	mappingInterval = time.Second
	// maxClockError is how far a capture time may be from this host's clock to be reported as one.
	maxClockError = time.Hour
)

// instants numbers the capture instants of a publication. The mutex of the ingress guards it.
type instants struct {
	kept [keptInstants]instant
	// next is the number of the next instant.
	next uint32
	// arrived is when the newest instant was first heard of.
	arrived time.Time
}

// instant is one capture, in milliseconds since 1970, 0 where that is not known, and the RTP timestamp of its frames.
type instant struct {
	number    uint32
	captured  uint64
	timestamp uint32
}

// of gives the instant of a frame that was captured at that time, of a track whose latest frame has the number before
// newer. Numbers of one track rise: a time that the track had before, or that lies before those of others, is a new
// instant or the nearest that the track has not had yet.
func (n *instants) of(captured uint64, newer uint32, now time.Time) instant {
	oldest := n.next - min(n.next, keptInstants)
	for number := max(oldest, newer); number < n.next; number++ {
		if at := n.kept[number%keptInstants]; captured != 0 && at.captured >= captured {
			return at
		}
	}
	at := instant{number: n.next, captured: captured, timestamp: uint32(captured * videoTicks)}
	if captured == 0 && n.next > 0 {
		before := n.kept[(n.next-1)%keptInstants]
		at.timestamp = before.timestamp + uint32(max(1, now.Sub(n.arrived).Milliseconds())*videoTicks)
	}
	n.kept[n.next%keptInstants] = at
	n.next, n.arrived = n.next+1, now
	return at
}

// converter makes of the packets of a VR2Gather peer's track what the server forwards. The mutex of the ingress guards
// it.
type converter struct {
	track    *track.Track
	kind     volumetric.Kind
	instants *instants
	// frames are the latest of the track, in a ring whose next place is next; newer is one more than the number of the
	// newest.
	frames [keptFrames]convertedFrame
	next   int
	newer  uint32
	// timestamp is that of the newest packet of sound.
	timestamp uint32
	mapped    time.Time
}

// convertedFrame is a frame by the peer's number.
type convertedFrame struct {
	known  bool
	theirs uint32
	instant
}

func newConverter(t *track.Track, shared *instants) *converter {
	c := &converter{track: t, kind: volumetric.KindVideo, instants: shared}
	if t.Audio() {
		c.kind = volumetric.KindAudio
	}
	return c
}

// restart forgets the frames before: the peer has begun again.
func (c *converter) restart() { clear(c.frames[:]) }

// convert gives the payload to forward, in place of the one that came, and gives the header its timestamp. Errors wrap
// vr2gather.ErrPacket.
func (c *converter) convert(h *rtp.Header, body []byte, now time.Time) ([]byte, error) {
	p, err := vr2gather.ParsePacket(c.kind, body)
	if err != nil {
		return nil, err
	}
	var begin vr2gather.FrameHeader
	if p.First() {
		begin = headerOf(&p)
		c.track.NameCodec(begin.FourCC)
	}
	if c.track.Audio() {
		if begin.TimestampMS != 0 {
			c.timestamp = uint32(begin.TimestampMS * audioTicks)
		}
		h.Timestamp = c.timestamp
		c.mapTime(begin, h.Timestamp, now)
		return body[:vr2gather.AudioHeaderSize+len(p.Data)], nil
	}
	if p.Offset%payload.FragmentSize != 0 {
		return nil, fmt.Errorf("%w: data at %d, expected a multiple of %d", vr2gather.ErrPacket, p.Offset,
			payload.FragmentSize)
	}
	at := c.frame(p.Frame, begin.TimestampMS, now)
	h.Timestamp = at.timestamp
	c.mapTime(begin, h.Timestamp, now)
	d := payload.Descriptor{
		Quality: uint8(c.track.Quality()), Index: uint16(p.Offset / payload.FragmentSize),
		Source: uint16(payload.SourceFragments(int(p.Length))),
		Frame:  at.number, Length: p.Length,
	}
	const skipped = vr2gather.VideoHeaderSize - payload.DescriptorSize
	if _, err := d.MarshalTo(body[skipped:]); err != nil {
		return nil, err
	}
	return body[skipped : vr2gather.VideoHeaderSize+len(p.Data)], nil
}

// headerOf is the header of the frame that a packet begins, zero where it begins with something else.
func headerOf(p *vr2gather.Packet) vr2gather.FrameHeader {
	h, err := vr2gather.ParseFrameHeader(p.Data)
	if err != nil || uint64(h.Length)+vr2gather.FrameHeaderSize != uint64(p.Length) {
		return vr2gather.FrameHeader{}
	}
	return h
}

// frame gives the instant of a frame by the peer's number. Where the first packet to arrive does not name a time, it is
// one by itself.
func (c *converter) frame(theirs uint32, captured uint64, now time.Time) instant {
	for i := range c.frames {
		if f := &c.frames[i]; f.known && f.theirs == theirs {
			return f.instant
		}
	}
	at := c.instants.of(captured, c.newer, now)
	c.frames[c.next%keptFrames] = convertedFrame{known: true, theirs: theirs, instant: at}
	c.next++
	c.newer = at.number + 1
	return at
}

// mapTime notes from time to time when a timestamp was captured, for the reports that receivers get.
func (c *converter) mapTime(begin vr2gather.FrameHeader, timestamp uint32, now time.Time) {
	capture := begin.Capture()
	if capture.IsZero() || now.Sub(c.mapped) < mappingInterval || capture.Sub(now).Abs() > maxClockError {
		return
	}
	c.mapped = now
	c.track.Map(track.Mapping{Timestamp: timestamp, Capture: capture, Arrived: now})
}
