package payload

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The sizes of payload v1, in bytes.
const (
	// DescriptorSize is the size of the descriptor that begins every packet.
	DescriptorSize = 16
	// FragmentSize is the size of every source fragment but a frame's last one, and of every parity fragment.
	FragmentSize = 1144
	// MaxPacketSize is the size of the largest RTP payload. With 12 bytes of RTP header, 8 of a transport-wide sequence number, 2 of a
	// retransmission and 16 of an AEAD tag it makes 1,198 bytes, which pass every path that carries WebRTC (1,200 bytes).
	MaxPacketSize = DescriptorSize + FragmentSize
	// PrefixSize is the size of the prefix: 4 bytes of codec and 8 of capture time.
	PrefixSize = 12
	// MaxFrameBytes is the default limit of a frame's length.
	MaxFrameBytes = 16 << 20
)

// Version is the version of the payload format, in the high four bits of a descriptor's first byte.
const Version = 1

// flagPrefixed is the lowest bit of the first byte. The other three low bits are reserved: 0 when sent, ignored when received.
const flagPrefixed = 1

// Errors of parsing and of making packets. They are wrapped with what was found and what was expected.
var (
	ErrDescriptor = errors.New("malformed payload descriptor")
	ErrPrefix     = errors.New("malformed frame prefix")
	ErrFrame      = errors.New("frame cannot be sent")
	ErrBuffer     = errors.New("buffer too short")
)

// Descriptor is what every packet says about its fragment and its frame.
type Descriptor struct {
	// Prefixed says that the frame's data begins with a Prefix.
	Prefixed bool
	// Quality is the index of the frame's quality, ascending with fidelity.
	Quality uint8
	// Index is the number of this fragment within the frame: source fragments from 0, parity fragments from Source.
	Index uint16
	// Source and Parity are the numbers of source and of parity fragments of the frame. Source is at least 1.
	Source, Parity uint16
	// Frame is the number of the frame, the same for all tiles and qualities of one capture instant. It wraps around.
	Frame uint32
	// Length is the length of the frame's data in bytes, prefix included. 0, or 12 with a prefix, is a tile without points.
	Length uint32
}

// Unmarshal parses an RTP payload and returns the fragment's data, which refers to packet. It checks all that one packet can show: the version,
// that Source follows from Length, that Index and Parity are within bounds, and that the data has the size that this fragment must have.
// Every error wraps ErrDescriptor.
func (d *Descriptor) Unmarshal(packet []byte) (rest []byte, err error) {
	if len(packet) < DescriptorSize {
		return nil, fmt.Errorf("%w: packet has %d bytes, expected at least %d", ErrDescriptor, len(packet), DescriptorSize)
	}
	if version := packet[0] >> 4; version != Version {
		return nil, fmt.Errorf("%w: version is %d, expected %d", ErrDescriptor, version, Version)
	}
	*d = Descriptor{
		Prefixed: packet[0]&flagPrefixed != 0,
		Quality:  packet[1],
		Index:    binary.BigEndian.Uint16(packet[2:]),
		Source:   binary.BigEndian.Uint16(packet[4:]),
		Parity:   binary.BigEndian.Uint16(packet[6:]),
		Frame:    binary.BigEndian.Uint32(packet[8:]),
		Length:   binary.BigEndian.Uint32(packet[12:]),
	}
	rest = packet[DescriptorSize:]
	if err := d.check(len(rest)); err != nil {
		return nil, err
	}
	return rest, nil
}

// MarshalTo writes the descriptor to the beginning of dst and returns its size. It fails with ErrBuffer if dst is too short.
func (d *Descriptor) MarshalTo(dst []byte) (int, error) {
	if len(dst) < DescriptorSize {
		return 0, fmt.Errorf("%w: descriptor takes %d bytes, got %d", ErrBuffer, DescriptorSize, len(dst))
	}
	dst[0] = Version << 4
	if d.Prefixed {
		dst[0] |= flagPrefixed
	}
	dst[1] = d.Quality
	binary.BigEndian.PutUint16(dst[2:], d.Index)
	binary.BigEndian.PutUint16(dst[4:], d.Source)
	binary.BigEndian.PutUint16(dst[6:], d.Parity)
	binary.BigEndian.PutUint32(dst[8:], d.Frame)
	binary.BigEndian.PutUint32(dst[12:], d.Length)
	return DescriptorSize, nil
}

// Packets is the number of packets of the frame, source and parity.
func (d *Descriptor) Packets() int { return int(d.Source) + int(d.Parity) }

// DataSize is the number of bytes that follow the descriptor in this packet.
func (d *Descriptor) DataSize() int {
	if d.Index == d.Source-1 {
		return int(d.Length) - (int(d.Source)-1)*FragmentSize
	}
	return FragmentSize
}

// SameFrame tells whether two packets agree on all that describes their frame. Packets of one frame that do not agree contradict each other.
func (d *Descriptor) SameFrame(other *Descriptor) bool {
	return d.Frame == other.Frame && d.Length == other.Length && d.Source == other.Source && d.Parity == other.Parity &&
		d.Quality == other.Quality && d.Prefixed == other.Prefixed
}

// SourceFragments is the number of source fragments of a frame of length bytes: at least one, so that an empty frame is seen, too.
func SourceFragments(length int) int {
	return max(1, (length+FragmentSize-1)/FragmentSize)
}

// check validates the descriptor against itself and against the number of bytes that follow it.
func (d *Descriptor) check(dataSize int) error {
	// The comparison also holds lengths of more than 65,535 fragments out, since Source cannot name them.
	if expected := SourceFragments(int(d.Length)); int(d.Source) != expected {
		return fmt.Errorf("%w: %d source fragments for %d bytes, expected %d", ErrDescriptor, d.Source, d.Length, expected)
	}
	if d.Prefixed && d.Length < PrefixSize {
		return fmt.Errorf("%w: prefixed frame of %d bytes, expected at least %d", ErrDescriptor, d.Length, PrefixSize)
	}
	if d.Parity > 0 && int(d.Parity) > MaxParity(int(d.Source)) {
		return fmt.Errorf("%w: %d parity fragments for %d source fragments, expected at most %d", ErrDescriptor, d.Parity, d.Source,
			MaxParity(int(d.Source)))
	}
	if int(d.Index) >= d.Packets() {
		return fmt.Errorf("%w: fragment %d of %d", ErrDescriptor, d.Index, d.Packets())
	}
	if expected := d.DataSize(); dataSize != expected {
		return fmt.Errorf("%w: fragment %d of %d has %d bytes, expected %d", ErrDescriptor, d.Index, d.Packets(), dataSize, expected)
	}
	return nil
}
