package recorder

import (
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/recording"
)

// chunk is a part of a segment on its way to the disk: whole records. The data of frames stay in the packets in which
// they arrived, until the chunk is written.
type chunk struct {
	segment int
	// first and last are set for the first and the last chunk of a segment.
	first, last bool
	// frames is the number of frames and units in the chunk.
	frames int
	pieces []piece
	// encoded is the memory of the pieces without frames.
	encoded []byte
	// size is the length of the records, held the memory that is in use until release.
	size, held int64
}

// piece is encoded records, or the head of the record of a frame.
type piece struct {
	encoded []byte
	frame   *payload.Frame
}

// record appends a record other than a frame.
func (c *chunk) record(r recording.Record) {
	from := len(c.encoded)
	c.encoded = recording.Append(c.encoded, r)
	c.add(c.encoded[from:], nil)
}

// frame appends a frame, which the chunk then owns.
func (c *chunk) frame(r *recording.Frame, f *payload.Frame) {
	from := len(c.encoded)
	c.encoded = recording.AppendFrameHead(c.encoded, r)
	c.add(c.encoded[from:], f)
}

func (c *chunk) add(encoded []byte, f *payload.Frame) {
	c.pieces = append(c.pieces, piece{encoded, f})
	c.size += int64(len(encoded))
	c.held += int64(len(encoded))
	if f != nil {
		c.size += int64(f.Length)
		c.held += int64(f.Memory())
	}
}

// empty reports whether the chunk has no record.
func (c *chunk) empty() bool { return len(c.pieces) == 0 }

// clear releases the records of the chunk.
func (c *chunk) clear() {
	for _, p := range c.pieces {
		if p.frame != nil {
			p.frame.Release()
		}
	}
	clear(c.pieces)
	c.pieces, c.encoded = c.pieces[:0], c.encoded[:0]
	c.frames, c.size, c.held = 0, 0, 0
}

// write passes the bytes of the records to out, in order. parts is memory for the call.
func (c *chunk) write(out *blocks, parts [][]byte) ([][]byte, error) {
	for _, p := range c.pieces {
		parts = parts[:0]
		if p.frame != nil {
			parts = p.frame.AppendParts(parts)
			recording.SealFrame(p.encoded, p.frame.Length, parts...)
		}
		if err := out.append(p.encoded); err != nil {
			return parts, err
		}
		for _, data := range parts {
			if err := out.append(data); err != nil {
				return parts, err
			}
		}
	}
	return parts, out.flush()
}
