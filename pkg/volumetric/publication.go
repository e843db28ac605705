package volumetric

import (
	"errors"
	"fmt"
	"strings"
)

// Limits that hold everywhere, whatever is configured: they keep numbers inside the fields that carry them on the wire.
const (
	// MaxTiles is the number of tiles that one publication may have.
	MaxTiles = 256
	// MaxQualities is the number of qualities per tile: the payload descriptor carries the quality in one byte.
	MaxQualities = 64
	// MaxNameLength is the length in bytes of the name of a room, participant or publication.
	MaxNameLength = 128
)

// Errors of validation. They are wrapped with what was wrong and what was expected.
var (
	ErrName        = errors.New("invalid name")
	ErrPublication = errors.New("invalid publication")
)

// Kind tells point clouds and other video from audio.
type Kind string

// The kinds of publication.
const (
	KindVideo Kind = "video"
	KindAudio Kind = "audio"
)

// Mode says how many qualities of one tile a receiver is sent.
type Mode string

// The modes of a publication.
const (
	// ModeAlternatives forwards at most one quality per tile (tiled simulcast).
	ModeAlternatives Mode = "alternatives"
	// ModeDescriptions forwards any subset of the qualities of a tile (multiple description coding).
	ModeDescriptions Mode = "descriptions"
)

// Quality is the index of a quality of a tile, ascending with fidelity. QualityOff means that nothing is forwarded.
type Quality int

// QualityOff switches a tile off.
const QualityOff Quality = -1

// Bitrate is a rate in bits per second.
type Bitrate int64

// String prints the rate with a unit, as in "12.5 Mbit/s".
func (b Bitrate) String() string {
	switch {
	case b >= 1e6 || b <= -1e6:
		return fmt.Sprintf("%.4g Mbit/s", float64(b)/1e6)
	case b >= 1e3 || b <= -1e3:
		return fmt.Sprintf("%.4g kbit/s", float64(b)/1e3)
	default:
		return fmt.Sprintf("%d bit/s", int64(b))
	}
}

// Codec names what the frames of a publication are encoded with.
type Codec struct {
	// MIMEType is the true media type, such as "video/volumetric", "video/H264", "audio/opus" or one that the server does not know.
	MIMEType string `json:"mime_type"`
	// ClockRate is the RTP clock in Hz: 90000 for volumetric video, 48000 for Opus.
	ClockRate uint32 `json:"clock_rate"`
	// Channels is the number of audio channels, 0 for video.
	Channels uint16 `json:"channels,omitempty"`
	// Format is the line of codec parameters as in SDP's fmtp, for instance "draco=1".
	Format string `json:"fmtp,omitempty"`
}

// The media types that a slot offers by name. Every other one travels as MIMEOpaque.
const (
	MIMEVolumetric = "video/volumetric"
	MIMEOpaque     = "video/opaque"
	MIMEH264       = "video/H264"
	MIMEVP8        = "video/VP8"
	MIMEOpus       = "audio/opus"
)

// MIMEOnWire is the media type that the codec is negotiated under: its own where slots offer it, else MIMEOpaque.
func (c Codec) MIMEOnWire() string {
	for _, known := range []string{MIMEVolumetric, MIMEH264, MIMEVP8, MIMEOpus} {
		if c.Is(known) {
			return known
		}
	}
	return MIMEOpaque
}

// Is tells whether the codec has the media type, letter case aside.
func (c Codec) Is(mimeType string) bool { return strings.EqualFold(c.MIMEType, mimeType) }

// FourCC names the codec of a frame by four characters, for instance "drco".
type FourCC [4]byte

// String prints the four characters.
func (f FourCC) String() string { return string(f[:]) }

// BoundingBox is an axis-aligned box in metres, in the publication's own right-handed coordinates (x right, y up, z towards the viewer).
type BoundingBox struct {
	Min [3]float32 `json:"min"`
	Max [3]float32 `json:"max"`
}

// Tile describes one spatial part or one semantic segment of an object.
type Tile struct {
	Label string      `json:"label,omitempty"`
	Box   BoundingBox `json:"box"`
}

// QualityLevel describes one quality, the same for all tiles of a publication.
type QualityLevel struct {
	Name string `json:"name,omitempty"`
	// Bitrate is the nominal rate of one tile at this quality, 0 where unknown.
	Bitrate Bitrate `json:"bitrate_bps,omitempty"`
}

// Publication describes one object that a participant publishes: Tiles × Qualities tracks.
type Publication struct {
	Name  string `json:"name"`
	Kind  Kind   `json:"kind"`
	Mode  Mode   `json:"mode"`
	Codec Codec  `json:"codec"`
	// FrameRate is the nominal number of frames per second, 0 where unknown.
	FrameRate float64        `json:"frame_rate,omitempty"`
	Tiles     []Tile         `json:"tiles"`
	Qualities []QualityLevel `json:"qualities"`
	// VR2Gather says that every frame begins with VR2Gather's header of 16 bytes, which names codec and capture time, and has no prefix of the payload
	// format. Participants that speak VR2Gather's dialect receive such publications only.
	VR2Gather bool `json:"vr2gather,omitempty"`
}

// TrackCount is the number of tracks that the publication consists of.
func (p *Publication) TrackCount() int { return len(p.Tiles) * len(p.Qualities) }

// Highest is the index of the best quality.
func (p *Publication) Highest() Quality { return Quality(len(p.Qualities) - 1) }

// Validate reports the first thing that is wrong with the description, wrapped around ErrPublication or ErrName.
// Limits on counts that operators set are the caller's.
func (p *Publication) Validate() error {
	if err := ValidateName("publication", p.Name); err != nil {
		return err
	}
	switch {
	case p.Kind != KindVideo && p.Kind != KindAudio:
		return fmt.Errorf("%w %q: kind is %q, expected %q or %q", ErrPublication, p.Name, p.Kind, KindVideo, KindAudio)
	case p.Mode != ModeAlternatives && p.Mode != ModeDescriptions:
		return fmt.Errorf("%w %q: mode is %q, expected %q or %q", ErrPublication, p.Name, p.Mode, ModeAlternatives, ModeDescriptions)
	case len(p.Tiles) < 1 || len(p.Tiles) > MaxTiles:
		return fmt.Errorf("%w %q: %d tiles, expected 1 to %d", ErrPublication, p.Name, len(p.Tiles), MaxTiles)
	case len(p.Qualities) < 1 || len(p.Qualities) > MaxQualities:
		return fmt.Errorf("%w %q: %d qualities, expected 1 to %d", ErrPublication, p.Name, len(p.Qualities), MaxQualities)
	case p.Kind == KindAudio && p.TrackCount() != 1:
		return fmt.Errorf("%w %q: audio has %d tracks, expected 1", ErrPublication, p.Name, p.TrackCount())
	case !strings.HasPrefix(strings.ToLower(p.Codec.MIMEType), string(p.Kind)+"/") || len(p.Codec.MIMEType) > MaxNameLength:
		return fmt.Errorf("%w %q: MIME type is %q, expected %s/NAME", ErrPublication, p.Name, p.Codec.MIMEType, p.Kind)
	case p.Codec.ClockRate == 0 || p.Codec.ClockRate > 1_000_000:
		return fmt.Errorf("%w %q: clock rate is %d, expected 1 to 1000000 Hz", ErrPublication, p.Name, p.Codec.ClockRate)
	case p.FrameRate < 0 || p.FrameRate > 1000:
		return fmt.Errorf("%w %q: frame rate is %g, expected 0 to 1000", ErrPublication, p.Name, p.FrameRate)
	case p.VR2Gather && p.Kind == KindVideo && (p.Mode != ModeAlternatives || !p.Codec.Is(MIMEVolumetric)):
		return fmt.Errorf("%w %q: VR2Gather's frames in mode %q as %q, expected mode %q and %s", ErrPublication, p.Name, p.Mode, p.Codec.MIMEType,
			ModeAlternatives, MIMEVolumetric)
	}
	return nil
}

// ValidateName reports whether a name of a room, participant or publication is 1 to MaxNameLength printable characters.
func ValidateName(what, name string) error {
	if name == "" || len(name) > MaxNameLength {
		return fmt.Errorf("%w of %s: %d bytes, expected 1 to %d", ErrName, what, len(name), MaxNameLength)
	}
	for _, r := range name {
		if r < ' ' || r == 0x7f || r == '�' {
			return fmt.Errorf("%w of %s: %q has a control character or invalid UTF-8", ErrName, what, name)
		}
	}
	return nil
}
