package dracojpeg

import (
	"encoding/binary"
	"fmt"

	"github.com/volsfu/volsfu/pkg/codec"
	_ "github.com/volsfu/volsfu/pkg/codec/draco" // registers the codec of the geometry
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// headerBytes is the size of the header before the geometry.
const headerBytes = 5

// geometry is the codec of the positions.
var geometry = func() codec.Codec {
	c, err := codec.ByName("draco")
	if err != nil {
		panic("dracojpeg: draco registers itself, and is not registered")
	}
	return c
}()

// frame contains the parts of a frame.
type frame struct {
	geometry, image []byte
	quality         int
}

// split splits a frame into its parts. Errors wrap codec.ErrMalformed.
func split(data []byte) (frame, error) {
	if len(data) < headerBytes {
		return frame{}, fmt.Errorf("%w: frame has %d bytes, expected at least %d", codec.ErrMalformed, len(data),
			headerBytes)
	}
	size, quality := uint64(binary.LittleEndian.Uint32(data)), int(data[4])
	rest := data[headerBytes:]
	switch {
	case size == 0 || size > uint64(len(rest)):
		return frame{}, fmt.Errorf("%w: geometry has %d bytes, expected 1 to %d", codec.ErrMalformed, size, len(rest))
	case quality > 100:
		return frame{}, fmt.Errorf("%w: quality of colours is %d, expected at most 100", codec.ErrMalformed, quality)
	}
	return frame{geometry: rest[:size], image: rest[size:], quality: quality}, nil
}

// announced returns the number of points that a frame announces.
func announced(geometry codec.Announcer, data []byte) (int, error) {
	f, err := split(data)
	if err != nil {
		return 0, fmt.Errorf("decode draco+jpeg: %w", err)
	}
	return geometry.Announced(f.geometry)
}

// decodeGeometry decodes the positions of a frame, and returns its parts. Points without colours are white.
func decodeGeometry(geometry codec.Announcer, cloud *pointcloud.Cloud, data []byte) (frame, error) {
	f, err := split(data)
	if err != nil {
		return frame{}, err
	}
	if err := geometry.Decode(cloud, f.geometry); err != nil {
		return frame{}, err
	}
	if f.quality == 0 && len(f.image) > 0 {
		return frame{}, fmt.Errorf(
			"%w: %d bytes behind the geometry of a frame without colours, expected none",
			codec.ErrMalformed,
			len(f.image),
		)
	}
	return f, nil
}
