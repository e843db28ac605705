package payload

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Browsers cannot make packets of payload v1. What they publish comes over a data channel, frame by frame, in chunks that are as large as such channels carry well; the
// server makes packets of it.

const (
	// ChunkHeaderSize is the size of the header that begins every chunk.
	ChunkHeaderSize = 20
	// ChunkSize is how many bytes of a frame every chunk but its last one has: with the header less than the 64 kB that every implementation of SCTP takes as one message.
	ChunkSize = 64_000
	// chunkVersion is the version of chunks.
	chunkVersion = 1
)

// ErrChunk is a malformed chunk. It is wrapped with what was found and what was expected.
var ErrChunk = errors.New("malformed chunk")

// Chunk is a part of a frame that a browser sends over a data channel.
type Chunk struct {
	// Prefixed, Quality, Frame and Length are as in a Descriptor.
	Prefixed bool
	Quality  uint8
	Frame    uint32
	Length   uint32
	// Tile is the index of the frame's tile.
	Tile uint16
	// Index is the number of this chunk within the frame, from 0.
	Index uint16
	// Timestamp is the RTP timestamp of the frame, the same for all tiles and qualities of one capture instant.
	Timestamp uint32
	// Data are the frame's bytes from Index × ChunkSize on.
	Data []byte
}

// Chunks is the number of chunks of a frame of length bytes: at least one.
func Chunks(length int) int { return max(1, (length+ChunkSize-1)/ChunkSize) }

// Append writes the chunk behind dst.
func (c *Chunk) Append(dst []byte) []byte {
	flags := uint8(0)
	if c.Prefixed {
		flags = flagPrefixed
	}
	dst = append(dst, chunkVersion, flags)
	dst = binary.BigEndian.AppendUint16(dst, c.Tile)
	dst = append(dst, c.Quality, 0)
	dst = binary.BigEndian.AppendUint16(dst, c.Index)
	dst = binary.BigEndian.AppendUint32(dst, c.Frame)
	dst = binary.BigEndian.AppendUint32(dst, c.Length)
	dst = binary.BigEndian.AppendUint32(dst, c.Timestamp)
	return append(dst, c.Data...)
}

// Unmarshal parses a chunk, whose data then refers to message. It checks all that one chunk can show. Every error wraps ErrChunk.
func (c *Chunk) Unmarshal(message []byte) error {
	if len(message) < ChunkHeaderSize {
		return fmt.Errorf("%w: %d bytes, expected at least %d", ErrChunk, len(message), ChunkHeaderSize)
	}
	if message[0] != chunkVersion {
		return fmt.Errorf("%w: version is %d, expected %d", ErrChunk, message[0], chunkVersion)
	}
	*c = Chunk{
		Prefixed:  message[1]&flagPrefixed != 0,
		Tile:      binary.BigEndian.Uint16(message[2:]),
		Quality:   message[4],
		Index:     binary.BigEndian.Uint16(message[6:]),
		Frame:     binary.BigEndian.Uint32(message[8:]),
		Length:    binary.BigEndian.Uint32(message[12:]),
		Timestamp: binary.BigEndian.Uint32(message[16:]),
		Data:      message[ChunkHeaderSize:],
	}
	chunks := Chunks(int(c.Length))
	if int(c.Index) >= chunks {
		return fmt.Errorf("%w: chunk %d of %d", ErrChunk, c.Index, chunks)
	}
	if want := min(ChunkSize, int(c.Length)-int(c.Index)*ChunkSize); len(c.Data) != want {
		return fmt.Errorf("%w: chunk %d of %d has %d bytes, expected %d", ErrChunk, c.Index, chunks, len(c.Data), want)
	}
	if c.Prefixed && c.Length < PrefixSize {
		return fmt.Errorf("%w: prefixed frame of %d bytes, expected at least %d", ErrChunk, c.Length, PrefixSize)
	}
	return nil
}
