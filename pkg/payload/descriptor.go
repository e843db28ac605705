package payload

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Sizes of payload v1, in bytes.
const (
	// DescriptorSize is the size of the descriptor at the start of every packet.
	DescriptorSize = 16
	// FragmentSize is the size of every parity fragment and of every source fragment except a
	// frame's last one.
	FragmentSize = 1144
	// MaxPacketSize is the size of the largest RTP payload. With 12 bytes of RTP header, 8 of the
	// transport-wide sequence number, 2 of a retransmission and 16 of an AEAD tag, the packet has
	// 1,198 bytes. Every path that carries WebRTC passes 1,200 bytes.
	MaxPacketSize = DescriptorSize + FragmentSize
	// PrefixSize is the size of the prefix: 4 bytes of codec name and 8 bytes of capture time.
	PrefixSize = 12
	// MaxFrameBytes is the default limit on the length of a frame.
	MaxFrameBytes = 16 << 20
)

// Version is the version of the payload format, in the high four bits of a descriptor's first byte.
const Version = 1

// flagPrefixed is the lowest bit of the first byte. The other three low bits are reserved: sent as
// 0 and ignored on reception.
const flagPrefixed = 1

// Errors of parsing and packetization. The wrapping error contains the value found and the value
// expected.
var (
	ErrDescriptor = errors.New("malformed payload descriptor")
	ErrPrefix     = errors.New("malformed frame prefix")
	ErrFrame      = errors.New("frame cannot be sent")
	ErrBuffer     = errors.New("buffer too short")
)

// Descriptor is the header at the start of every packet. A Descriptor describes the packet's fragment and frame.
type Descriptor struct {
	// Prefixed reports that the frame's data begins with a Prefix.
	Prefixed bool
	// Quality is the index of the frame's quality, in ascending order of fidelity.
	Quality uint8
	// Index is the number of this fragment within the frame: source fragments from 0, parity fragments from Source.
	Index uint16
	// Source and Parity are the numbers of source and of parity fragments of the frame. Source is at least 1.
	Source, Parity uint16
	// Frame is the frame number, equal for all tiles and qualities of one capture time. Frame
	// numbers wrap around.
	Frame uint32
	// Length is the length of the frame's data in bytes, including the prefix. A length of 0, or of
	// 12 with a prefix, is a tile without points.
	Length uint32
}

// Unmarshal parses an RTP payload and returns the fragment's data, which refers to the memory of
// packet. Unmarshal checks everything that can be checked on a single packet: the version, that
// Source follows from Length, that Index and Parity are within bounds, and that the data has the
// size of this fragment. Every error wraps ErrDescriptor.
func (d *Descriptor) Unmarshal(packet []byte) (rest []byte, err error) {
	if len(packet) < DescriptorSize {
		return nil, fmt.Errorf(
			"%w: packet has %d bytes, expected at least %d",
			ErrDescriptor,
			len(packet),
			DescriptorSize,
		)
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

// MarshalTo writes the descriptor to the start of dst and returns its size. The error wraps
// ErrBuffer if dst is too short.
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

// Packets returns the number of packets of the frame, source and parity.
func (d *Descriptor) Packets() int { return int(d.Source) + int(d.Parity) }

// DataSize returns the number of bytes after the descriptor in this packet.
func (d *Descriptor) DataSize() int {
	if d.Index == d.Source-1 {
		return int(d.Length) - (int(d.Source)-1)*FragmentSize
	}
	return FragmentSize
}

// SameFrame reports whether d and other agree in all fields that describe the frame. If packets of
// one frame disagree, the packets contradict each other.
func (d *Descriptor) SameFrame(other *Descriptor) bool {
	return d.Frame == other.Frame && d.Length == other.Length && d.Source == other.Source && d.Parity == other.Parity &&
		d.Quality == other.Quality && d.Prefixed == other.Prefixed
}

// SourceFragments returns the number of source fragments of a frame of length bytes. An empty frame
// has one fragment, so that receivers see the frame.
func SourceFragments(length int) int {
	return max(1, (length+FragmentSize-1)/FragmentSize)
}

// check validates the consistency of the descriptor and the number of bytes after it.
func (d *Descriptor) check(dataSize int) error {
	// This comparison also rejects lengths of more than 65,535 fragments, because Source cannot
	// express them.
	if expected := SourceFragments(int(d.Length)); int(d.Source) != expected {
		return fmt.Errorf(
			"%w: %d source fragments for %d bytes, expected %d",
			ErrDescriptor,
			d.Source,
			d.Length,
			expected,
		)
	}
	if d.Prefixed && d.Length < PrefixSize {
		return fmt.Errorf("%w: prefixed frame of %d bytes, expected at least %d", ErrDescriptor, d.Length, PrefixSize)
	}
	if d.Parity > 0 && int(d.Parity) > MaxParity(int(d.Source)) {
		return fmt.Errorf(
			"%w: %d parity fragments for %d source fragments, expected at most %d",
			ErrDescriptor,
			d.Parity,
			d.Source,
			MaxParity(int(d.Source)),
		)
	}
	if int(d.Index) >= d.Packets() {
		return fmt.Errorf("%w: fragment %d of %d", ErrDescriptor, d.Index, d.Packets())
	}
	if expected := d.DataSize(); dataSize != expected {
		return fmt.Errorf(
			"%w: fragment %d of %d has %d bytes, expected %d",
			ErrDescriptor,
			d.Index,
			d.Packets(),
			dataSize,
			expected,
		)
	}
	return nil
}
