package parts

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

const (
	// headerBytes is the size of the head before the sizes of the parts, sizeBytes the size of each
	// part's entry.
	headerBytes = 8
	sizeBytes   = 8
)

// encoder encodes the parts of one cloud at a time.
type encoder struct {
	inner   codec.Codec
	most    int
	limit   int // in points
	parts   []*part
	cutter  cutter
	workers *workers
	params  codec.Params
}

// part is the state of one part. Only one goroutine uses it at a time.
type part struct {
	encoder codec.Encoder
	cloud   pointcloud.Cloud // in the caller's memory or in slab
	slab    pointcloud.Cloud
	data    []byte
	points  int
	err     error
}

func newEncoder(inner codec.Codec, c Config) *encoder {
	e := &encoder{inner: inner, most: c.Parts, limit: min(maxPoints, inner.Capabilities().MaxPoints)}
	e.workers = newWorkers(c.Pool, func(i int) {
		p := e.parts[i]
		p.data, p.err = p.encoder.Encode(p.data[:0], &p.cloud, e.params)
	})
	return e
}

// Encode appends the cloud's frame to dst.
func (e *encoder) Encode(dst []byte, cloud *pointcloud.Cloud, params codec.Params) ([]byte, error) {
	if err := params.Check(cloud, e.limit); err != nil {
		return dst, fmt.Errorf("encode parts: %w", err)
	}
	n := cloud.Len()
	if n == 0 {
		return dst, nil
	}
	count := min(e.most, max(1, n/leastPoints))
	for len(e.parts) < count {
		e.parts = append(e.parts, &part{encoder: e.inner.NewEncoder()})
	}
	e.params = params
	e.split(cloud, count)
	e.workers.run(count)
	size := headerBytes
	for i, p := range e.parts[:count] {
		// The cloud belongs to the caller. Only its number of points is needed from here on.
		p.points, p.cloud = p.cloud.Len(), pointcloud.Cloud{}
		if p.err != nil {
			return dst, fmt.Errorf("encode parts: part %d of %d: %w", i, count, p.err)
		}
		size += sizeBytes + len(p.data)
	}
	return e.write(slices.Grow(dst, size), count), nil
}

// split assigns points to the parts. Slabs may be empty if many points share a coordinate; the
// following parts then move up.
func (e *encoder) split(cloud *pointcloud.Cloud, count int) {
	if count == 1 || e.params.Sequential {
		for i, p := range e.parts[:count] {
			p.cloud = section(cloud, i*cloud.Len()/count, (i+1)*cloud.Len()/count, e.params.NoColors)
		}
		return
	}
	e.cutter.cut(cloud, e.parts[:count], e.params.NoColors)
}

// section returns a range of the cloud's points in the memory of the cloud.
func section(cloud *pointcloud.Cloud, begin, end int, plain bool) pointcloud.Cloud {
	part := pointcloud.Cloud{Positions: cloud.Positions[begin:end:end]}
	if !plain {
		part.Colors = cloud.Colors[begin:end:end]
	}
	return part
}

// write appends the head and the parts that have points.
func (e *encoder) write(dst []byte, count int) []byte {
	filled := 0
	for _, p := range e.parts[:count] {
		if p.points > 0 {
			filled++
		}
	}
	name := e.inner.FourCC()
	dst = append(dst, name[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(filled))
	for _, p := range e.parts[:count] {
		if p.points > 0 {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(p.points))
			dst = binary.LittleEndian.AppendUint32(dst, uint32(len(p.data)))
		}
	}
	for _, p := range e.parts[:count] {
		dst = append(dst, p.data...)
	}
	return dst
}
