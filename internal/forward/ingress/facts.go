package ingress

import (
	"fmt"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/switching"
)

// classifier determines the facts of a packet, once for all receivers. classifier belongs to the reader of the track.
type classifier struct {
	track  *track.Track
	frames *frameNumbers
	clock  *feedback.CaptureClock
	// maxBytes is the maximum length of a frame of payload v1.
	maxBytes int

	// started is set with the first packet, whose sequence number is first. highest, timestamp and marker belong to the
	// packet with the highest number.
	started   bool
	first     int64
	highest   int64
	timestamp uint32
	marker    bool
	// newest is the number of the newest frame of a framed track, 0 before the first.
	newest int64
	// end is the number of the last packet of the newest frame of a framed track, except for parity.
	end int64
	// whole is set if the first packet belongs to a frame of which all packets are sent to this connection.
	whole bool
	// opened counts opened frames.
	opened int64
}

// frameNumbers extends the 32-bit frame numbers of a publication to 64 bits by serial arithmetic relative to the newest
// number.
type frameNumbers struct {
	started bool
	newest  int64
}

// extend returns the extended number nearest to the newest. The first number is placed in the second cycle, so that all
// extended numbers are above 0.
func (n *frameNumbers) extend(frame uint32) int64 {
	if !n.started {
		n.started = true
		n.newest = 1<<32 + int64(frame)
		return n.newest
	}
	extended := n.newest + int64(int32(frame-uint32(n.newest)))
	n.newest = max(n.newest, extended)
	return extended
}

// restart forgets the former packets, whose sequence numbers are unrelated to the next ones.
func (c *classifier) restart() { c.started, c.whole = false, false }

// classify determines the facts of a packet with an extended sequence number. classify returns an error if the payload
// is malformed.
func (c *classifier) classify(h *rtp.Header, body []byte, sequence int64) (switching.Packet, packetlog.Class, error) {
	f := switching.Packet{Track: c.track.ID(), Sequence: sequence, Timestamp: h.Timestamp, Marker: h.Marker}
	newer := !c.started || sequence > c.highest
	if !c.started {
		c.first = sequence
	}
	kind := packetlog.Media
	switch {
	case c.track.Framed():
		parity, err := c.classifyFramed(&f, body)
		if err != nil {
			return f, kind, err
		}
		if parity {
			kind = packetlog.Parity
		}
	case c.track.Audio():
		kind = packetlog.Audio
		// Every audio packet is a frame.
		f.Opens, f.Key, f.Last = newer, true, true
	case len(body) == 0:
		// Padding has a sequence number, but belongs to no frame.
		kind = packetlog.Probe
	default:
		c.classifyForeign(&f, body, newer)
	}
	if !c.track.Framed() {
		f.Capture, _ = c.clock.Capture(h.Timestamp)
	}
	if newer {
		c.started, c.highest, c.timestamp, c.marker = true, sequence, h.Timestamp, h.Marker
	}
	if f.Opens {
		c.opened++
	}
	return f, kind, nil
}

// classifyFramed reads the descriptor of payload v1.
func (c *classifier) classifyFramed(f *switching.Packet, body []byte) (parity bool, err error) {
	var d payload.Descriptor
	if _, err := d.Unmarshal(body); err != nil {
		return false, err
	}
	packets := d.Packets()
	if limit := c.maxBytes; int64(d.Length) > int64(limit) || packets > track.MaxFramePackets {
		return false, fmt.Errorf("%w: frame of %d bytes in %d packets, expected at most %d in %d",
			payload.ErrDescriptor, d.Length, packets, limit, track.MaxFramePackets)
	}
	f.Framed, f.Key = true, true
	f.Frame = c.frames.extend(d.Frame)
	f.FrameStart = f.Sequence - int64(d.Index)
	f.FramePackets, f.SourcePackets = packets, int(d.Source)
	f.Last = int(d.Index) == packets-1
	if c.whole && !c.started {
		c.first = f.FrameStart
	}
	if f.Frame > c.newest {
		c.newest, c.end = f.Frame, f.FrameStart+int64(f.SourcePackets)-1
		// If the stream began in the middle of this frame, the start of the frame will never arrive.
		f.Opens = f.FrameStart >= c.first
	}
	return d.Index >= d.Source, nil
}

// classifyForeign separates frames by timestamp and marker. A frame opens only if its start cannot be missing: directly
// after the former packet, if the packet itself is the start of a key frame, or if the stream continues the track of
// another connection with a whole frame.
func (c *classifier) classifyForeign(f *switching.Packet, body []byte, newer bool) {
	f.Key = !c.track.NeedsKey()
	if !newer {
		return
	}
	begins := !c.started || c.marker || f.Timestamp != c.timestamp
	certain := c.started && f.Sequence == c.highest+1 || !c.started && c.whole
	if c.track.NeedsKey() {
		f.Key = switching.KeyFrame(c.track.Codec().MIMEType, body)
		certain = certain || f.Key
	}
	f.Opens = begins && certain
}
