package carriage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// EnvelopeSize is the size of the header of every frame on every transport, in bytes. The transports' own headers
// differ. The envelope provides the same information with all transports, and distinguishes a complete frame from a
// frame with holes.
const EnvelopeSize = 32

// MaxFrameBytes bounds a frame with its envelope: the default limit of the project's payload format.
const MaxFrameBytes = 16 << 20

// magic begins an envelope. A frame whose first packet is missing does not begin with magic.
const magic = 0x766c6172 // "vlar"

// ErrFrame reports that data is not a frame: too short, of another form, or with holes. The wrapping error describes
// the data.
var ErrFrame = errors.New("damaged frame")

// Frame is one tile at one quality at one capture instant, in the form for transmission. In network byte order an
// envelope is:
//
//	magic u32 | tile u16 | quality u8 | 0 u8 | frame number u32 | codec FourCC |
//	capture time i64, nanoseconds since 1970 | xxHash64 of the data after the envelope u64
type Frame struct {
	Tile    int
	Quality volumetric.Quality
	// Number counts the encoded captures. All tiles and qualities of one capture have the same number.
	Number  uint32
	Codec   volumetric.FourCC
	Capture time.Time
	// Data is the output of the codec, empty for a tile without points.
	Data []byte
	// Bytes is the envelope followed by Data, the content that transports carry.
	Bytes []byte
}

// Seal sets Bytes from the other fields, in the memory of buffer, and makes Data a part of Bytes.
func (f *Frame) Seal(buffer []byte) {
	b := binary.BigEndian.AppendUint32(buffer[:0], magic)
	b = binary.BigEndian.AppendUint16(b, uint16(f.Tile))
	b = append(b, byte(f.Quality), 0)
	b = binary.BigEndian.AppendUint32(b, f.Number)
	b = append(b, f.Codec[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(f.Capture.UnixNano()))
	b = binary.BigEndian.AppendUint64(b, xxhash.Sum64(f.Data))
	b = append(b, f.Data...)
	f.Bytes, f.Data = b, b[EnvelopeSize:]
}

// Open parses a frame that has arrived. Data and Bytes are parts of data. Errors wrap ErrFrame; if only the content is
// damaged, the other fields are set.
func (f *Frame) Open(data []byte) error {
	*f = Frame{}
	if len(data) < EnvelopeSize || binary.BigEndian.Uint32(data) != magic || data[7] != 0 ||
		data[6] >= volumetric.MaxQualities {
		return fmt.Errorf("%w: %d bytes, expected at least %d bytes that begin with an envelope", ErrFrame, len(data),
			EnvelopeSize)
	}
	*f = Frame{
		Tile:    int(binary.BigEndian.Uint16(data[4:])),
		Quality: volumetric.Quality(data[6]),
		Number:  binary.BigEndian.Uint32(data[8:]),
		Codec:   volumetric.FourCC(data[12:16]),
		Capture: time.Unix(0, int64(binary.BigEndian.Uint64(data[16:]))),
		Data:    data[EnvelopeSize:],
		Bytes:   data,
	}
	if f.Tile >= volumetric.MaxTiles {
		return fmt.Errorf("%w: tile %d, expected below %d", ErrFrame, f.Tile, volumetric.MaxTiles)
	}
	if xxhash.Sum64(f.Data) != binary.BigEndian.Uint64(data[24:]) {
		return fmt.Errorf("%w: tile %d of frame %d differs from the bytes sent", ErrFrame, f.Tile, f.Number)
	}
	return nil
}
