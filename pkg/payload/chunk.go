package payload

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Browsers cannot make packets of payload v1. A browser publishes frames over a data channel. Each
// frame is cut into chunks of a size that data channels carry well; the server converts the chunks
// to packets.

const (
	// ChunkHeaderSize is the size in bytes of the header of every chunk.
	ChunkHeaderSize = 20
	// ChunkSize is the number of frame bytes in every chunk except a frame's last one. With the
	// header, a chunk stays below the 64 kB that every SCTP implementation accepts as one message.
	ChunkSize = 64_000
	// chunkVersion is the version of the chunk format, numberedVersion that of numbered chunks.
	chunkVersion    = 1
	numberedVersion = 2
	// NumberedHeaderSize is the size in bytes of the header of a numbered chunk.
	NumberedHeaderSize = ChunkHeaderSize + 2
	// NumberedChunkSize is the number of frame bytes in every numbered chunk except a frame's last
	// one. With its header, the chunk has 1,160 bytes and fills a packet of Chromium's SCTP: 1,191
	// bytes, of which 28 are headers. In the rest of a packet SCTP would begin the next message,
	// and the loss of the packet would cost two.
	NumberedChunkSize = 1160 - NumberedHeaderSize
)

// ErrChunk reports a malformed chunk. The wrapping error contains the value found and the value
// expected.
var ErrChunk = errors.New("malformed chunk")

// Chunk is one part of a frame that a browser sends over a data channel.
type Chunk struct {
	// Prefixed, Quality, Frame and Length have the same meaning as in Descriptor.
	Prefixed bool
	Quality  uint8
	Frame    uint32
	Length   uint32
	// Tile is the index of the frame's tile.
	Tile uint16
	// Index is the number of this chunk within the frame, from 0.
	Index uint16
	// Timestamp is the RTP timestamp of the frame, equal for all tiles and qualities of one capture
	// time.
	Timestamp uint32
	// Numbered chunks are small, and have a number that counts the messages of their channel. The channel does not
	// retransmit; the receiver requests missing numbers.
	Numbered bool
	Number   uint16
	// Data holds the frame's bytes from offset Index × ChunkSize on, or Index × NumberedChunkSize.
	Data []byte
}

// Chunks returns the number of chunks of a frame of length bytes, at least one.
func Chunks(length int) int { return max(1, (length+ChunkSize-1)/ChunkSize) }

// Size returns the number of frame bytes in every chunk of the frame except the last one.
func (c *Chunk) Size() int {
	if c.Numbered {
		return NumberedChunkSize
	}
	return ChunkSize
}

// Count returns the number of chunks of the frame, at least one.
func (c *Chunk) Count() int { return max(1, (int(c.Length)+c.Size()-1)/c.Size()) }

// Append appends the encoded chunk to dst.
func (c *Chunk) Append(dst []byte) []byte {
	flags := uint8(0)
	if c.Prefixed {
		flags = flagPrefixed
	}
	version := uint8(chunkVersion)
	if c.Numbered {
		version = numberedVersion
	}
	dst = append(dst, version, flags)
	dst = binary.BigEndian.AppendUint16(dst, c.Tile)
	dst = append(dst, c.Quality, 0)
	dst = binary.BigEndian.AppendUint16(dst, c.Index)
	dst = binary.BigEndian.AppendUint32(dst, c.Frame)
	dst = binary.BigEndian.AppendUint32(dst, c.Length)
	dst = binary.BigEndian.AppendUint32(dst, c.Timestamp)
	if c.Numbered {
		dst = binary.BigEndian.AppendUint16(dst, c.Number)
	}
	return append(dst, c.Data...)
}

// Unmarshal parses a chunk. Data then refers to the memory of message. Unmarshal checks everything
// that can be checked on a single chunk. Every error wraps ErrChunk.
func (c *Chunk) Unmarshal(message []byte) error {
	if len(message) < ChunkHeaderSize {
		return fmt.Errorf("%w: %d bytes, expected at least %d", ErrChunk, len(message), ChunkHeaderSize)
	}
	numbered := message[0] == numberedVersion
	switch {
	case !numbered && message[0] != chunkVersion:
		return fmt.Errorf("%w: version is %d, expected %d or %d", ErrChunk, message[0], chunkVersion, numberedVersion)
	case numbered && len(message) < NumberedHeaderSize:
		return fmt.Errorf("%w: %d bytes, expected at least %d", ErrChunk, len(message), NumberedHeaderSize)
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
		Numbered:  numbered,
	}
	if numbered {
		c.Number, c.Data = binary.BigEndian.Uint16(message[ChunkHeaderSize:]), message[NumberedHeaderSize:]
	}
	chunks, size := c.Count(), c.Size()
	if int(c.Index) >= chunks {
		return fmt.Errorf("%w: chunk %d of %d", ErrChunk, c.Index, chunks)
	}
	if want := min(size, int(c.Length)-int(c.Index)*size); len(c.Data) != want {
		return fmt.Errorf("%w: chunk %d of %d has %d bytes, expected %d", ErrChunk, c.Index, chunks, len(c.Data), want)
	}
	if c.Prefixed && c.Length < PrefixSize {
		return fmt.Errorf("%w: prefixed frame of %d bytes, expected at least %d", ErrChunk, c.Length, PrefixSize)
	}
	return nil
}
