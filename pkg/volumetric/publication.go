package volumetric

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fixed limits, independent of configuration. They keep numbers within the fields that carry them
// on the wire.
const (
	// MaxTiles is the maximum number of tiles of a publication.
	MaxTiles = 256
	// MaxQualities is the maximum number of qualities per tile. The payload descriptor carries the
	// quality in one byte.
	MaxQualities = 64
	// MaxNameLength is the maximum length of the name of a room, participant or publication, in
	// bytes.
	MaxNameLength = 128
	// MaxEncryptionLength is the maximum length of the name of an encryption, in bytes.
	MaxEncryptionLength = 32
)

// Errors of validation. The wrapping error contains the value found and the value expected.
var (
	ErrName        = errors.New("invalid name")
	ErrPublication = errors.New("invalid publication")
)

// Kind distinguishes video, which includes point clouds, from audio.
type Kind string

// The kinds of publication.
const (
	KindVideo Kind = "video"
	KindAudio Kind = "audio"
)

// Mode is the number of qualities of one tile that a receiver gets.
type Mode string

// The modes of a publication.
const (
	// ModeAlternatives forwards at most one quality per tile (tiled simulcast).
	ModeAlternatives Mode = "alternatives"
	// ModeDescriptions forwards any subset of the qualities of a tile (multiple description coding).
	ModeDescriptions Mode = "descriptions"
)

// Quality is the index of a quality of a tile, ascending with fidelity. QualityOff means that
// nothing is forwarded.
type Quality int

// QualityOff switches a tile off.
const QualityOff Quality = -1

// Codec describes the encoding of the frames of a publication.
type Codec struct {
	// MIMEType is the true media type, for example "video/volumetric", "video/H264", "audio/opus",
	// or a type that is unknown to the server.
	MIMEType string `json:"mime_type"`
	// ClockRate is the RTP clock rate in Hz: 90000 for volumetric video, 48000 for Opus.
	ClockRate uint32 `json:"clock_rate"`
	// Channels is the number of audio channels, 0 for video.
	Channels uint16 `json:"channels,omitempty"`
	// Format contains the codec parameters as in SDP's fmtp, for example "draco=1".
	Format string `json:"fmtp,omitempty"`
}

// The media types that a slot offers by name. Every other media type is sent as MIMEOpaque.
const (
	MIMEVolumetric = "video/volumetric"
	MIMEOpaque     = "video/opaque"
	MIMEH264       = "video/H264"
	MIMEVP8        = "video/VP8"
	MIMEOpus       = "audio/opus"
)

// MIMEOnWire returns the media type with which the codec is negotiated: its own type if slots offer
// it, otherwise MIMEOpaque.
func (c Codec) MIMEOnWire() string {
	for _, known := range []string{MIMEVolumetric, MIMEH264, MIMEVP8, MIMEOpus} {
		if c.Is(known) {
			return known
		}
	}
	return MIMEOpaque
}

// Is reports whether the codec has the media type. The comparison ignores case.
func (c Codec) Is(mimeType string) bool { return strings.EqualFold(c.MIMEType, mimeType) }

// FourCC identifies the codec of a frame by four characters, for example "drco".
type FourCC [4]byte

// String returns the four characters.
func (f FourCC) String() string { return string(f[:]) }

// BoundingBox is an axis-aligned box in metres, in the publication's own right-handed coordinates
// (x right, y up, z towards the viewer).
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
	// Bitrate is the nominal bit rate of one tile at this quality, 0 if unknown.
	Bitrate Bitrate `json:"bitrate_bps,omitempty"`
	// Width and Height are the size of the encoded picture in pixels, 0 if unknown or if the publication is not a
	// picture.
	Width  int `json:"width,omitempty"`
	Height int `json:"height,omitempty"`
	// FrameRate is the nominal number of frames of the picture per second, 0 if it is that of the publication.
	FrameRate float64 `json:"frame_rate,omitempty"`
}

// Publication describes one object that a participant publishes: Tiles × Qualities tracks.
type Publication struct {
	Name  string `json:"name"`
	Kind  Kind   `json:"kind"`
	Mode  Mode   `json:"mode"`
	Codec Codec  `json:"codec"`
	// FrameRate is the nominal number of frames per second, 0 if unknown.
	FrameRate float64        `json:"frame_rate,omitempty"`
	Tiles     []Tile         `json:"tiles"`
	Qualities []QualityLevel `json:"qualities"`
	// VR2Gather reports that every frame begins with VR2Gather's 16-byte header, which contains the
	// codec and the capture time, instead of the prefix of the payload format. Participants that
	// use the VR2Gather dialect receive only such publications.
	VR2Gather bool `json:"vr2gather,omitempty"`
	// Encryption names the scheme by which the frames or packets are encrypted from the publisher to the receivers. It
	// is empty if they are not. The server forwards encrypted frames like others.
	Encryption string `json:"encryption,omitempty"`
	// Picture is nil for objects with depth and for audio.
	Picture *Picture `json:"picture,omitempty"`
}

// TrackCount returns the number of tracks of the publication.
func (p *Publication) TrackCount() int { return len(p.Tiles) * len(p.Qualities) }

// Highest returns the index of the best quality.
func (p *Publication) Highest() Quality { return Quality(len(p.Qualities) - 1) }

// Validate returns an error for the first invalid part of the description. The error wraps
// ErrPublication or ErrName. Validate does not check limits that operators configure.
func (p *Publication) Validate() error {
	if err := ValidateName("publication", p.Name); err != nil {
		return err
	}
	switch {
	case p.Kind != KindVideo && p.Kind != KindAudio:
		return fmt.Errorf("%w %q: kind is %q, expected %q or %q", ErrPublication, p.Name, p.Kind, KindVideo, KindAudio)
	case p.Mode != ModeAlternatives && p.Mode != ModeDescriptions:
		return fmt.Errorf(
			"%w %q: mode is %q, expected %q or %q",
			ErrPublication,
			p.Name,
			p.Mode,
			ModeAlternatives,
			ModeDescriptions,
		)
	case len(p.Tiles) < 1 || len(p.Tiles) > MaxTiles:
		return fmt.Errorf("%w %q: %d tiles, expected 1 to %d", ErrPublication, p.Name, len(p.Tiles), MaxTiles)
	case len(p.Qualities) < 1 || len(p.Qualities) > MaxQualities:
		return fmt.Errorf(
			"%w %q: %d qualities, expected 1 to %d",
			ErrPublication,
			p.Name,
			len(p.Qualities),
			MaxQualities,
		)
	case p.Kind == KindAudio && p.TrackCount() != 1:
		return fmt.Errorf("%w %q: audio has %d tracks, expected 1", ErrPublication, p.Name, p.TrackCount())
	case !strings.HasPrefix(strings.ToLower(p.Codec.MIMEType), string(p.Kind)+"/") ||
		len(p.Codec.MIMEType) > MaxNameLength:
		return fmt.Errorf("%w %q: MIME type is %q, expected %s/NAME", ErrPublication, p.Name, p.Codec.MIMEType, p.Kind)
	case p.Codec.ClockRate == 0 || p.Codec.ClockRate > 1_000_000:
		return fmt.Errorf(
			"%w %q: clock rate is %d, expected 1 to 1000000 Hz",
			ErrPublication,
			p.Name,
			p.Codec.ClockRate,
		)
	case p.FrameRate < 0 || p.FrameRate > 1000:
		return fmt.Errorf("%w %q: frame rate is %g, expected 0 to 1000", ErrPublication, p.Name, p.FrameRate)
	case p.VR2Gather && p.Kind == KindVideo && (p.Mode != ModeAlternatives || !p.Codec.Is(MIMEVolumetric)):
		return fmt.Errorf(
			"%w %q: VR2Gather frames have mode %q and media type %q, expected mode %q and %s",
			ErrPublication,
			p.Name,
			p.Mode,
			p.Codec.MIMEType,
			ModeAlternatives,
			MIMEVolumetric,
		)
	}
	if err := p.validatePicture(); err != nil {
		return err
	}
	return p.validateEncryption()
}

// validateEncryption returns an error if the name of the encryption is invalid, or if the encryption
// would hide parts of a frame that the server or VR2Gather's clients read.
func (p *Publication) validateEncryption() error {
	switch {
	case p.Encryption == "":
		return nil
	case len(p.Encryption) > MaxEncryptionLength ||
		strings.Trim(p.Encryption, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		return fmt.Errorf(
			"%w %q: encryption is %.64q, expected 1 to %d characters of a-z, 0-9 and -",
			ErrPublication,
			p.Name,
			p.Encryption,
			MaxEncryptionLength,
		)
	case p.VR2Gather:
		return fmt.Errorf("%w %q: VR2Gather frames cannot be encrypted from end to end", ErrPublication, p.Name)
	case p.Codec.Is(MIMEH264) || p.Codec.Is(MIMEVP8):
		return fmt.Errorf(
			"%w %q: %s cannot be encrypted from end to end, because the server reads its packets",
			ErrPublication,
			p.Name,
			p.Codec.MIMEType,
		)
	}
	return nil
}

// ValidateName returns an error that wraps ErrName unless name has 1 to MaxNameLength bytes of UTF-8 without control
// characters. The names "." and ".." are invalid: as segments of a path they mean other segments (RFC 3986 section
// 3.3). what is the kind of name, for the error text.
func ValidateName(what, name string) error {
	if name == "" || len(name) > MaxNameLength {
		return fmt.Errorf("%w of %s: %d bytes, expected 1 to %d", ErrName, what, len(name), MaxNameLength)
	}
	if name == "." || name == ".." {
		return fmt.Errorf("%w of %s: %q has another meaning in paths", ErrName, what, name)
	}
	for _, r := range name {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return fmt.Errorf("%w of %s: %q has a control character or invalid UTF-8", ErrName, what, name)
		}
	}
	return nil
}
