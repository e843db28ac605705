package vr2gather

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrPacket reports that an RTP payload is not a packet of a frame, or that a packet cannot be
// sent.
var ErrPacket = errors.New("malformed VR2Gather packet")

// Sizes of packets, in bytes.
const (
	// VideoHeaderSize and AudioHeaderSize are the sizes of the header of every packet.
	VideoHeaderSize = 28
	AudioHeaderSize = 20
	// MaxVideoData and MaxAudioData are the maximum numbers of frame bytes in a packet.
	MaxVideoData = 1144
	MaxAudioData = 1152
	// MaxPacketSize is the size of the largest RTP payload. Peers read packets into a buffer of
	// 1,220 bytes, with 20 bytes of RTP header and a tag of up to 16 bytes. Larger packets are
	// truncated.
	MaxPacketSize = VideoHeaderSize + MaxVideoData
)

// frameOffset is the offset of the frame number in the header of a packet.
const frameOffset = 4

// Packet is one RTP payload: a part of a frame. The header consists of numbers of four bytes each,
//
//	client, frame number, frame length, offset, length of the data in this packet; for video also tile and quality
//
// followed by the data. Peers number the frames of each track independently from 0, so that the
// numbers of a publication's tiles and qualities drift apart. A receiver completes a frame by
// counting bytes: a duplicated packet corrupts the frame.
type Packet struct {
	// Kind selects the header format.
	Kind volumetric.Kind
	// Client is the publisher's id as chosen by its client.
	Client uint32
	// Frame is the number of the frame within its track.
	Frame uint32
	// Length is the number of bytes of the whole frame, including the FrameHeader. A parser returns
	// any value: compare the length with a limit before you allocate memory for it.
	Length uint32
	// Offset is the position of Data within the frame.
	Offset uint32
	// Tile and Quality are 0 for audio. A parser returns any value.
	Tile, Quality uint32
	// Data is the part of the frame in this packet.
	Data []byte
}

// HeaderSize returns the size in bytes of the packet header for a kind.
func HeaderSize(kind volumetric.Kind) int {
	if kind == volumetric.KindAudio {
		return AudioHeaderSize
	}
	return VideoHeaderSize
}

// MaxData returns the maximum number of frame bytes in a packet of a kind.
func MaxData(kind volumetric.Kind) int {
	if kind == volumetric.KindAudio {
		return MaxAudioData
	}
	return MaxVideoData
}

// ParsePacket parses the RTP payload of a track of the given kind. Bytes after the announced data
// are ignored, because datagrams between connector and peer are padded. The error wraps ErrPacket
// if the data is shorter than announced, larger than a packet may carry, outside of its frame, or
// empty although the frame is not.
func ParsePacket(kind volumetric.Kind, payload []byte) (Packet, error) {
	header := HeaderSize(kind)
	if len(payload) < header {
		return Packet{}, fmt.Errorf("%w: %d bytes of %s, expected at least %d", ErrPacket, len(payload), kind, header)
	}
	field := func(i int) uint32 { return binary.LittleEndian.Uint32(payload[4*i:]) }
	p := Packet{Kind: kind, Client: field(0), Frame: field(1), Length: field(2), Offset: field(3)}
	size := field(4)
	if kind != volumetric.KindAudio {
		p.Tile, p.Quality = field(5), field(6)
	}
	if uint64(size) > uint64(len(payload)-header) {
		return Packet{}, fmt.Errorf(
			"%w: header announces %d bytes of data, %d follow",
			ErrPacket,
			size,
			len(payload)-header,
		)
	}
	p.Data = payload[header : header+int(size)]
	return p, p.check()
}

// check checks the consistency of the packet.
func (p *Packet) check() error {
	switch {
	case len(p.Data) > MaxData(p.Kind):
		return fmt.Errorf("%w: %d bytes of data, expected at most %d", ErrPacket, len(p.Data), MaxData(p.Kind))
	case uint64(p.Offset)+uint64(len(p.Data)) > uint64(p.Length):
		return fmt.Errorf("%w: %d bytes at %d of a frame of %d", ErrPacket, len(p.Data), p.Offset, p.Length)
	case len(p.Data) == 0 && p.Length > 0:
		return fmt.Errorf("%w: no data, of a frame of %d bytes", ErrPacket, p.Length)
	}
	return nil
}

// Append appends the RTP payload to dst, at most MaxPacketSize bytes. Errors wrap ErrPacket under
// the conditions of ParsePacket; dst is then unchanged.
func (p *Packet) Append(dst []byte) ([]byte, error) {
	if err := p.check(); err != nil {
		return dst, err
	}
	fields := [...]uint32{p.Client, p.Frame, p.Length, p.Offset, uint32(len(p.Data)), p.Tile, p.Quality}
	for _, v := range fields[:HeaderSize(p.Kind)/4] {
		dst = binary.LittleEndian.AppendUint32(dst, v)
	}
	return append(dst, p.Data...), nil
}

// First reports whether the packet begins its frame, so that Data begins with the FrameHeader.
func (p *Packet) First() bool { return p.Offset == 0 }

// Last reports whether the packet ends its frame.
func (p *Packet) Last() bool { return uint64(p.Offset)+uint64(len(p.Data)) == uint64(p.Length) }

// Cut yields the packets of a whole frame in order. All packets except the last have the maximum
// size. Cut uses the fields Kind, Client, Frame, Tile and Quality of frame. Data is not copied. An
// empty frame has no packets, as with the original peer.
func Cut(frame Packet, data []byte) iter.Seq[Packet] {
	return func(yield func(Packet) bool) {
		size := MaxData(frame.Kind)
		for offset := 0; offset < len(data); offset += size {
			p := frame
			p.Length, p.Offset, p.Data = uint32(len(data)), uint32(offset), data[offset:min(offset+size, len(data))]
			if !yield(p) {
				return
			}
		}
	}
}

// SetFrame replaces the frame number in an RTP payload of either kind, in place. SetFrame returns false if the payload
// is too short.
func SetFrame(payload []byte, frame uint32) bool {
	if len(payload) < AudioHeaderSize {
		return false
	}
	binary.LittleEndian.PutUint32(payload[frameOffset:], frame)
	return true
}
