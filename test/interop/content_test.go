package interop

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// content is the information that a frame carries after VR2Gather's header, with which a receiver can verify it.
type content struct {
	// Client is the publisher's own number, Tile is -1 for sound.
	Client, Tile, Quality int
	// Instant counts captures, including skipped frames.
	Instant uint32
	// Size is that of the frame.
	Size int
}

// minContent is the size of the header and the five words after it.
const minContent = vr2gather.FrameHeaderSize + 20

// frame returns the frame.
func (c content) frame(capture time.Time) []byte {
	codec := vr2gather.CodecRawPoints
	if c.Tile < 0 {
		codec = vr2gather.CodecVoice
	}
	size := max(c.Size, minContent)
	frame := vr2gather.NewFrameHeader(volumetric.FourCC(codec), size-vr2gather.FrameHeaderSize,
		capture).Append(make([]byte, 0, size))
	for _, word := range []uint32{uint32(c.Client), uint32(c.Tile), uint32(c.Quality), c.Instant, uint32(size)} {
		frame = binary.BigEndian.AppendUint32(frame, word)
	}
	random := rand.New(rand.NewPCG(uint64(c.Client)<<32|uint64(uint32(c.Tile)),
		uint64(c.Quality)<<32|uint64(c.Instant)))
	for len(frame) < size {
		frame = binary.BigEndian.AppendUint64(frame, random.Uint64())
	}
	return frame[:size]
}

// read returns the content of a frame, and whether the frame is intact.
func read(frame []byte) (content, error) {
	var header vr2gather.FrameHeader
	data, err := header.Parse(frame)
	if err != nil {
		return content{}, err
	}
	if len(frame) < minContent {
		return content{}, fmt.Errorf("%d bytes, expected at least %d", len(frame), minContent)
	}
	word := func(i int) int { return int(int32(binary.BigEndian.Uint32(data[4*i:]))) }
	c := content{Client: word(0), Tile: word(1), Quality: word(2), Instant: uint32(word(3)), Size: word(4)}
	if c.Size != len(frame) || !bytes.Equal(frame, c.frame(header.Capture())) {
		return c, fmt.Errorf("frame %+v of %d bytes differs from the sent one", c, len(frame))
	}
	return c, nil
}
