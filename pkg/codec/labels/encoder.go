package labels

import (
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// encoder keeps its working memory, eight bytes per point.
type encoder struct {
	fourCC     codec.FourCC
	inner      codec.OrderedEncoder
	order      []uint32
	planes     []byte
	compressor *zstd.Encoder
}

// Encode appends the cloud's frame to dst.
func (e *encoder) Encode(dst []byte, cloud *pointcloud.Cloud, params codec.Params) ([]byte, error) {
	n := cloud.Len()
	if err := params.Check(cloud, maxPoints); err != nil {
		return dst, fmt.Errorf("encode labels: %w", err)
	}
	for _, values := range [][]uint16{cloud.Labels, cloud.Sources} {
		if len(values) > 0 && len(values) != n {
			return dst, fmt.Errorf(
				"encode labels: %w: %d labels or sources of %d points",
				codec.ErrParams,
				len(values),
				n,
			)
		}
	}
	if n == 0 {
		return dst, nil
	}
	begin := len(dst)
	dst = append(dst, e.fourCC[:]...)
	dst = append(dst, make([]byte, headerBytes-4)...)
	frame, order, err := e.inner.EncodeOrdered(dst, e.order, cloud, params)
	e.order = order
	if err != nil {
		return dst[:begin], fmt.Errorf("encode labels: %w", err)
	}
	head := frame[begin:]
	binary.LittleEndian.PutUint32(head[4:], uint32(len(head)-headerBytes))
	binary.LittleEndian.PutUint32(head[8:], uint32(n))
	e.planes = e.planes[:0]
	if e.gather(cloud.Labels) {
		head[12] |= hasLabels
	}
	if e.gather(cloud.Sources) {
		head[12] |= hasSources
	}
	if len(e.planes) == 0 {
		return frame, nil
	}
	if e.compressor == nil {
		// Neighbours almost always have the same label: more effort finds little more and costs
		// time.
		e.compressor, err = zstd.NewWriter(
			nil,
			zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithEncoderConcurrency(1),
			zstd.WithLowerEncoderMem(true),
		)
		if err != nil {
			return dst[:begin], fmt.Errorf("encode labels: %w", err)
		}
	}
	return e.compressor.EncodeAll(e.planes, frame), nil
}

// gather appends two planes of values in the order in which the points are decoded. gather returns false if there are
// no values.
func (e *encoder) gather(values []uint16) bool {
	if len(values) == 0 {
		return false
	}
	for shift := 0; shift < 16; shift += 8 {
		for _, at := range e.order {
			e.planes = append(e.planes, uint8(values[at]>>shift))
		}
	}
	return true
}
