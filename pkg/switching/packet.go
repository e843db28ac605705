package switching

import (
	"math"
	"time"
)

// TrackID identifies an incoming track within one process. A TrackID is never 0: a Source with track 0 means "off".
type TrackID uint64

// Packet contains the facts about one packet. The reader of the track determines them once for all
// Switchers that see the packet.
type Packet struct {
	Track TrackID
	// Sequence is the extended (unwrapped) RTP sequence number of the track.
	Sequence  int64
	Timestamp uint32
	Marker    bool

	// Framed reports that the packet names its frame (payload v1). Only then are Frame, FrameStart
	// and FramePackets valid.
	Framed bool
	// Frame is the extended frame number, comparable between the tracks of one Group.
	Frame int64
	// FrameStart is the extended sequence number of the frame's first packet: Sequence - fragment
	// index.
	FrameStart int64
	// FramePackets is the number of packets of the frame, source and parity, 1 to 32,767.
	FramePackets int
	// SourcePackets is the number of packets, the first of FramePackets, that carry the frame
	// itself: 1 to FramePackets. The remaining packets are parity. 0 means FramePackets: the frame
	// is forwarded whole.
	SourcePackets int
	// Last reports that this is the frame's last planned packet, which carries the marker. The
	// reader of a foreign track may set Last if the frame is known to end here regardless of the
	// marker, as every packet of audio does.
	Last bool

	// Opens reports that this is the first packet to arrive of a frame newer than all earlier
	// frames of this track. The reader of a foreign track (not Framed) sets Opens only if the
	// beginning of the frame is not missing.
	Opens bool
	// Key reports that decoding can begin at this frame: always for framed and opaque tracks, at
	// key frames for H264 and VP8.
	Key bool
	// Capture is the capture time of the frame if known, for example from sender reports; otherwise
	// zero. Capture aligns the timestamps of tracks of different Groups.
	Capture time.Time
}

// maxFramePackets limits the numbers that one packet can make a Switcher reserve. A 16 MiB frame
// (14,666 packets) still has room for the same number of parity packets.
const maxFramePackets = 1<<15 - 1

// planned returns the range of input numbers that are forwarded if the packet's frame begins now.
// share is the number of parity packets per source packet.
func (p *Packet) planned(share float64) (first, last int64) {
	first, last = p.extent()
	if !p.Framed || p.SourcePackets == 0 {
		return first, last
	}
	// A share like 0.07 is slightly larger in binary, but 7 % of 100 packets must be 7.
	const rounding = 1e-9
	parity := math.Ceil(share*float64(p.SourcePackets) - rounding)
	return first, min(last, first+int64(p.SourcePackets)+int64(parity)-1)
}

// extent returns the range of input numbers that the packet's frame is known to cover.
func (p *Packet) extent() (first, last int64) {
	if p.Framed {
		return p.FrameStart, p.FrameStart + int64(p.FramePackets) - 1
	}
	return p.Sequence, p.Sequence
}

// consistent reports whether the packet lies within the frame that it names.
func (p *Packet) consistent() bool {
	if !p.Framed {
		return true
	}
	index := p.Sequence - p.FrameStart
	return p.FramePackets <= maxFramePackets && index >= 0 && index < int64(p.FramePackets) &&
		p.SourcePackets >= 0 && p.SourcePackets <= p.FramePackets
}

// Source is a track that feeds a slot.
type Source struct {
	// Track is the incoming track, 0 for "off".
	Track TrackID
	// Group identifies the tracks that share frame numbers and RTP timestamps: the tracks of one
	// publication with payload v1 while its publisher runs. Each foreign track is a separate Group.
	Group uint64
	// NeedsKey reports that decoding the track can begin only at a key frame.
	NeedsKey bool
}

// is reports whether both sources name the same track in the same Group.
func (s Source) is(other Source) bool { return s.Track == other.Track && s.Group == other.Group }

// Action is the decision about a packet.
type Action uint8

// The actions.
const (
	Drop Action = iota
	Forward
)

// String returns the name of the action for logs.
func (a Action) String() string {
	if a == Forward {
		return "forward"
	}
	return "drop"
}

// Verdict is the decision about a packet. Sequence, Timestamp, Marker, Switched and Unbegun are
// valid for Forward only.
type Verdict struct {
	Action    Action
	Sequence  uint16
	Timestamp uint32
	Marker    bool
	// Switched marks the first packet after a switch or after a pause.
	Switched bool
	// Unbegun is set for a packet that begins a frame: the number of frame numbers of its Group,
	// before this frame, that no track has begun. The count includes lost frames, skipped frames,
	// and frames that arrived during a pause. Unbegun is 0 if the Group did not feed the slot last
	// or has restarted its numbering.
	Unbegun int
	// WantKey reports that the packet's track is selected but waits for a key frame. WantKey is set
	// for every packet dropped for this reason; the caller limits the rate of its requests to the
	// publisher.
	WantKey bool
}

// DefaultCutAfter is the time for which a frame without an end can delay a switch, and for which a
// pending track that fell silent can keep the active track from beginning a frame: three frame
// intervals at 30 frames per second.
const DefaultCutAfter = 100 * time.Millisecond

// DefaultClockRate is the RTP clock rate of video, in Hz.
const DefaultClockRate = 90_000

// Config describes one outgoing stream.
type Config struct {
	// ClockRate is the RTP clock rate in Hz; 0 means DefaultClockRate.
	ClockRate uint32
	// FirstSequence and FirstTimestamp are the values of the first packet. They should be random
	// (RFC 3550 section 5.1).
	FirstSequence  uint16
	FirstTimestamp uint32
	// KeepTimestamps is set for a stream between two servers: packets leave with the timestamps of
	// their tracks, and FirstTimestamp is not used.
	KeepTimestamps bool
	// CutAfter is the maximum time that a switch waits for the end of a frame; 0 means
	// DefaultCutAfter.
	CutAfter time.Duration
}
