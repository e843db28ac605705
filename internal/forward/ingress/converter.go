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

// Tracks of a VR2Gather peer arrive in VR2Gather's own packets. The reader converts video packets into payload v1 on
// arrival, one to one and in place: both formats split frames every 1,144 bytes. The rest of the server handles only
// payload v1. The peer does not send the frame numbers and timestamps that all tracks of a publication share, so the
// reader derives both from the capture time in the frame's own header. Audio packets stay unchanged.

// videoTicks and audioTicks are the RTP clock ticks per millisecond, at 90 kHz and 48 kHz.
const (
	videoTicks = 90
	audioTicks = 48
)

const (
	// keptInstants is the number of capture instants remembered for tiles and qualities that are encoded later than
	// others: one second at 60 frames per second.
	keptInstants = 64
	// keptFrames is the number of frames of a track remembered for late packets.
	keptFrames = 8
	// mappingInterval is the interval at which the capture times of a track are recorded for sender reports.
	mappingInterval = time.Second
	// maxClockError is the maximum difference between a reported capture time and this host's clock.
	maxClockError = time.Hour
)

// instants numbers the capture instants of a publication. The mutex of the ingress guards it.
type instants struct {
	kept [keptInstants]instant
	// next is the number of the next instant.
	next uint32
	// arrived is the arrival time of the first packet of the newest instant.
	arrived time.Time
}

// instant is one capture: its number, the capture time in milliseconds since 1970, 0 if unknown, and the RTP timestamp
// of its frames.
type instant struct {
	number    uint32
	captured  uint64
	timestamp uint32
}

// of returns the instant of a frame with that capture time. newer is the lowest number that the frame may have: one
// more than the number of the track's latest frame. Numbers of one track increase. A capture time that the track had
// before, or that precedes the times of other tracks, yields the next instant that the track has not used, or a new
// instant.
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

// converter converts the packets of a VR2Gather peer's track into payload v1. The mutex of the ingress guards it.
type converter struct {
	track    *track.Track
	kind     volumetric.Kind
	instants *instants
	// frames are the latest frames of the track, in a ring with the next entry at next. newer is one more than the
	// number of the newest frame.
	frames [keptFrames]convertedFrame
	next   int
	newer  uint32
	// timestamp is the RTP timestamp of the newest audio packet.
	timestamp uint32
	mapped    time.Time
}

// convertedFrame is a frame with the number that the peer assigned.
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

// restart forgets the former frames, because the peer has restarted its numbers.
func (c *converter) restart() { clear(c.frames[:]) }

// convert returns the payload to forward, in the memory of the received payload, and sets the timestamp of the header.
// Errors wrap vr2gather.ErrPacket.
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

// headerOf returns the header of the frame that the packet begins, or the zero header if the data does not begin with a
// valid frame header.
func headerOf(p *vr2gather.Packet) vr2gather.FrameHeader {
	h, err := vr2gather.ParseFrameHeader(p.Data)
	if err != nil || uint64(h.Length)+vr2gather.FrameHeaderSize != uint64(p.Length) {
		return vr2gather.FrameHeader{}
	}
	return h
}

// frame returns the instant of a frame with the peer's number. If the first packet to arrive has no capture time, the
// frame gets an instant of its own.
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

// mapTime records the capture time of a timestamp once per mappingInterval, for the sender reports to receivers.
func (c *converter) mapTime(begin vr2gather.FrameHeader, timestamp uint32, now time.Time) {
	capture := begin.Capture()
	if capture.IsZero() || now.Sub(c.mapped) < mappingInterval || capture.Sub(now).Abs() > maxClockError {
		return
	}
	c.mapped = now
	c.track.Map(track.Mapping{Timestamp: timestamp, Capture: capture, Arrived: now})
}
