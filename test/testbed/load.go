package testbed

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Load describes one publication of generated frames.
type Load struct {
	Name      string
	Tiles     int
	Qualities int
	// FrameBytes is the mean size of one tile's frame at the highest quality.
	FrameBytes int
	// Step is the ratio of the sizes of one quality and the next lower quality. With 0 all qualities have one size.
	Step float64
	// Variation is the largest random deviation of a frame's size from the mean, as a share of the mean, 0 to 1.
	Variation float64
	// Rate is in frames per second.
	Rate float64
	Mode volumetric.Mode
}

// Publication returns the description of the load for the server.
func (l Load) Publication() volumetric.Publication {
	mode := l.Mode
	if mode == "" {
		mode = volumetric.ModeAlternatives
	}
	p := volumetric.Publication{
		Name:      l.Name,
		Kind:      volumetric.KindVideo,
		Mode:      mode,
		Codec:     volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
		FrameRate: l.Rate,
		Tiles:     make([]volumetric.Tile, l.Tiles),
		Qualities: make([]volumetric.QualityLevel, l.Qualities),
	}
	for q := range p.Qualities {
		p.Qualities[q].Bitrate = volumetric.Bitrate(float64(8*l.size(volumetric.Quality(q))) * l.Rate)
	}
	return p
}

// size returns the mean size of a frame at a quality, in bytes.
func (l Load) size(quality volumetric.Quality) int {
	size := float64(l.FrameBytes)
	if l.Step > 0 {
		size /= math.Pow(l.Step, float64(l.Qualities-1-int(quality)))
	}
	return max(int(math.Round(size)), frameHeader)
}

// frameHeader is the size in bytes of the header of a frame: number, tile, quality and the checksum of the rest, four
// bytes each.
const frameHeader = 16

// frameFactory makes the frames of one load. The content is random, hence incompressible, and the same in all frames.
type frameFactory struct {
	load    Load
	seed    uint64
	filling []byte
}

func newFrameFactory(load Load, seed uint64) *frameFactory {
	random := rand.New(rand.NewPCG(seed, seed))
	filling := make([]byte, max(int(math.Ceil(float64(load.FrameBytes)*(1+load.Variation))), frameHeader))
	for i := range filling {
		filling[i] = byte(random.Uint32())
	}
	return &frameFactory{load, seed, filling}
}

// size returns the size of one frame, in bytes. The qualities of a tile vary by the same factor, like the qualities of
// one real object.
func (f *frameFactory) size(number uint32, tile int, quality volumetric.Quality) int {
	mean := f.load.size(quality)
	if f.load.Variation == 0 {
		return mean
	}
	random := rand.New(rand.NewPCG(f.seed, uint64(number)<<32|uint64(tile)))
	return max(int(float64(mean)*(1+f.load.Variation*(2*random.Float64()-1))), frameHeader)
}

// frame makes one frame. The bytes are valid until the next call.
func (f *frameFactory) frame(number uint32, tile int, quality volumetric.Quality) []byte {
	frame := f.filling[:f.size(number, tile, quality)]
	binary.BigEndian.PutUint32(frame, number)
	binary.BigEndian.PutUint32(frame[4:], uint32(tile))
	binary.BigEndian.PutUint32(frame[8:], uint32(quality))
	binary.BigEndian.PutUint32(frame[12:], checksum(frame))
	return frame
}

// checksum returns the checksum of all bytes except the checksum field.
func checksum(frame []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE(frame[:12]), crc32.IEEETable, frame[frameHeader:])
}

// verify returns an error if a received frame differs from the expected frame.
func verify(data []byte, number int64, tile int, quality volumetric.Quality) error {
	if len(data) < frameHeader {
		return fmt.Errorf("%d bytes, expected at least %d", len(data), frameHeader)
	}
	got := [3]uint32{binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:]),
		binary.BigEndian.Uint32(data[8:])}
	want := [3]uint32{uint32(number), uint32(tile), uint32(quality)}
	switch {
	case got != want:
		return fmt.Errorf("frame, tile and quality are %v, expected %v", got, want)
	case binary.BigEndian.Uint32(data[12:]) != checksum(data):
		return fmt.Errorf("frame %v has a wrong checksum", got)
	}
	return nil
}
