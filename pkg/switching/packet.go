package switching

import (
	"math"
	"time"
)

// TrackID identifies an incoming track within one process. It is never 0: a Source with track 0 means "off".
type TrackID uint64

// Packet holds the facts about one packet. The reader of the track establishes them once, for all Switchers that see the packet.
type Packet struct {
	Track TrackID
	// Sequence is the extended (unwrapped) RTP sequence number of the track.
	Sequence  int64
	Timestamp uint32
	Marker    bool

	// Framed says that the packet names its frame (payload v1), so that Frame, FrameStart and FramePackets hold.
	Framed bool
	// Frame is the extended frame number, comparable across the tracks of one Group.
	Frame int64
	// FrameStart is the extended sequence number of the frame's first packet: Sequence - fragment index.
	FrameStart int64
	// FramePackets is the number of packets of the frame, source and parity, 1 to 32,767.
	FramePackets int
	// SourcePackets is how many of FramePackets come first and carry the frame itself, 1 to FramePackets; the rest is parity. 0 is the same as
	// FramePackets: a frame that is forwarded whole.
	SourcePackets int
	// Last says that this is the last packet planned of the frame, the one to carry the marker. A reader of a foreign track may set it where
	// it knows that the frame ends here whatever the marker says, as every packet of audio does.
	Last bool

	// Opens says that this is the first packet to arrive of a frame newer than every earlier one on this track. A reader
	// of a foreign track (not Framed) sets it only where the frame's head is not missing.
	Opens bool
	// Key says that decoding can begin at this frame: always for framed and opaque tracks, at key frames for H264 and VP8.
	Key bool
	// Capture is the capture time of the frame if known, from sender reports for instance, else zero. It aligns the timestamps of tracks of
	// different Groups.
	Capture time.Time
}

// maxFramePackets bounds what one packet can make a Switcher reserve. It leaves 16 MiB frames (14,666 packets) as much parity again.
const maxFramePackets = 1<<15 - 1

// planned is the range of input numbers that go out if the packet's frame begins now, with so much parity per source packet.
func (p *Packet) planned(share float64) (first, last int64) {
	first, last = p.extent()
	if !p.Framed || p.SourcePackets == 0 {
		return first, last
	}
	// A share like 0.07 is a little more in binary: 7 % of 100 packets are 7 all the same.
	const rounding = 1e-9
	parity := math.Ceil(share*float64(p.SourcePackets) - rounding)
	return first, min(last, first+int64(p.SourcePackets)+int64(parity)-1)
}

// extent is the range of input numbers that the packet's frame is known to cover.
func (p *Packet) extent() (first, last int64) {
	if p.Framed {
		return p.FrameStart, p.FrameStart + int64(p.FramePackets) - 1
	}
	return p.Sequence, p.Sequence
}

// consistent says whether the packet lies within the frame that it claims to belong to.
func (p *Packet) consistent() bool {
	if !p.Framed {
		return true
	}
	index := p.Sequence - p.FrameStart
	return p.FramePackets <= maxFramePackets && index >= 0 && index < int64(p.FramePackets) &&
		p.SourcePackets >= 0 && p.SourcePackets <= p.FramePackets
}

// Source is what feeds a slot.
type Source struct {
	// Track is the incoming track, 0 for "off".
	Track TrackID
	// Group names the tracks that share frame numbers and RTP timestamps: those of one publication with payload v1, for as long as its
	// publisher runs. A foreign track is a Group of its own.
	Group uint64
	// NeedsKey says that decoding the track can begin only at a key frame.
	NeedsKey bool
}

// is says whether both name the same track in the same role.
func (s Source) is(other Source) bool { return s.Track == other.Track && s.Group == other.Group }

// Action is what to do with a packet.
type Action uint8

// The actions.
const (
	Drop Action = iota
	Forward
)

// String prints the action for logs.
func (a Action) String() string {
	if a == Forward {
		return "forward"
	}
	return "drop"
}

// Verdict says what to do with a packet. Sequence, Timestamp, Marker, Switched and Unbegun hold for Forward only.
type Verdict struct {
	Action    Action
	Sequence  uint16
	Timestamp uint32
	Marker    bool
	// Switched marks the first packet after a switch, or after a pause.
	Switched bool
	// Unbegun is how many frames of its group, by their numbers, no track has begun before the packet, which begins a frame: those lost, those skipped, and those that came during a pause.
	// Of a group that was not the last to feed the slot, or that counts anew, nothing is expected.
	Unbegun int
	// WantKey says that the packet's track is selected but waits for a key frame. It is said for every packet that is dropped for
	// that reason; the caller limits the requests that it sends to the publisher.
	WantKey bool
}

// DefaultCutAfter is the time for which a frame without an end can delay a switch, and for which a pending track that
// went silent can keep the active one from beginning a frame: three frame intervals at 30 frames per second.
const DefaultCutAfter = 100 * time.Millisecond

// DefaultClockRate is the RTP clock of video.
const DefaultClockRate = 90_000

// Config describes one outgoing stream.
type Config struct {
	// ClockRate is the RTP clock in Hz, 0 for DefaultClockRate.
	ClockRate uint32
	// FirstSequence and FirstTimestamp are what the first packet gets. They should be random (RFC 3550 section 5.1).
	FirstSequence  uint16
	FirstTimestamp uint32
	// CutAfter is how long a switch waits, 0 for DefaultCutAfter.
	CutAfter time.Duration
}
