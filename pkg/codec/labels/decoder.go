package labels

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/planes"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// decoder keeps its working memory and a decoder of the last codec used.
type decoder struct {
	fourCC codec.FourCC
	inner  codec.Announcer
	planes planes.Decompressor
}

// Decode replaces the cloud's points by the frame's. If this program does not have the codec of the
// points, the error wraps codec.ErrUnknown.
func (d *decoder) Decode(cloud *pointcloud.Cloud, data []byte) error {
	cloud.Reset()
	if len(data) == 0 {
		return nil
	}
	if err := d.decode(cloud, data); err != nil {
		cloud.Reset()
		return fmt.Errorf("decode labels: %w", err)
	}
	return nil
}

// Announced implements codec.Announcer.
func (*decoder) Announced(data []byte) (int, error) {
	_, points, _, err := parse(data)
	if err != nil {
		return 0, fmt.Errorf("decode labels: %w", err)
	}
	return points, nil
}

// parse parses the head: the size of the inner frame in bytes, the number of points, and the flags
// of the attributes. Errors wrap codec.ErrMalformed.
func parse(data []byte) (bytes, points int, beside uint8, err error) {
	if len(data) < headerBytes {
		return 0, 0, 0, fmt.Errorf("%w: %d bytes, expected at least %d", codec.ErrMalformed, len(data), headerBytes)
	}
	size, count, beside := binary.LittleEndian.Uint32(data[4:]), binary.LittleEndian.Uint32(data[8:]), data[12]
	most := codec.MostPoints(len(data), maxPoints)
	switch {
	case size == 0 || uint64(size) > uint64(len(data)-headerBytes):
		return 0, 0, 0, fmt.Errorf("%w: frame of the points has %d bytes, expected 1 to %d", codec.ErrMalformed, size,
			len(data)-headerBytes)
	case count == 0 || uint64(count) > uint64(most):
		return 0, 0, 0, fmt.Errorf("%w: %d points in %d bytes, expected 1 to %d", codec.ErrMalformed, count,
			len(data), most)
	case beside > hasLabels|hasSources:
		return 0, 0, 0, fmt.Errorf("%w: attribute flags are %#x, expected 0 to 3", codec.ErrMalformed,
			beside)
	}
	return int(size), int(count), beside, nil
}

func (d *decoder) decode(cloud *pointcloud.Cloud, data []byte) error {
	size, n, beside, err := parse(data)
	if err != nil {
		return err
	}
	rest := data[headerBytes+size:]
	if err := d.prepare(codec.FourCC(data)); err != nil {
		return err
	}
	inner := data[headerBytes:][:size]
	announced, err := d.inner.Announced(inner)
	if err != nil {
		return err
	}
	if announced != n {
		return fmt.Errorf("%w: the points' frame announces %d points, the head says %d", codec.ErrMalformed,
			announced, n)
	}
	if err := d.inner.Decode(cloud, inner); err != nil {
		return err
	}
	if cloud.Len() != n {
		return fmt.Errorf("%w: %d points, the head says %d", codec.ErrMalformed, cloud.Len(), n)
	}
	// Attributes set by the inner codec are not part of this frame.
	cloud.Labels, cloud.Sources = cloud.Labels[:0], cloud.Sources[:0]
	if beside == 0 {
		if len(rest) > 0 {
			return fmt.Errorf("%w: %d bytes behind the points, expected none", codec.ErrMalformed, len(rest))
		}
		return nil
	}
	bytes := 2 * n
	if beside == hasLabels|hasSources {
		bytes = 4 * n
	}
	values, err := d.planes.Decompress(rest, bytes)
	if err != nil {
		return err
	}
	if beside&hasLabels != 0 {
		cloud.Labels = scatter(cloud.Labels, values[:2*n])
	}
	if beside&hasSources != 0 {
		cloud.Sources = scatter(cloud.Sources, values[bytes-2*n:])
	}
	return nil
}

// prepare selects a decoder for the codec of the points. A codec that does not report the order of
// its points cannot carry labels. This rule also excludes a frame that contains itself.
func (d *decoder) prepare(name codec.FourCC) error {
	if d.inner != nil && d.fourCC == name {
		return nil
	}
	c, err := codec.ByFourCC(name)
	if err != nil {
		return err
	}
	decoder, announces := c.NewDecoder().(codec.Announcer)
	if !c.Capabilities().Ordered || !announces {
		return fmt.Errorf("%w: labels of %s, which does not tell the order of its points", codec.ErrMalformed,
			c.Name())
	}
	d.fourCC, d.inner = name, decoder
	return nil
}

// scatter appends the values of two planes.
func scatter(values []uint16, planes []byte) []uint16 {
	low, high := planes[:len(planes)/2], planes[len(planes)/2:]
	values = slices.Grow(values, len(low))
	for i, v := range low {
		values = append(values, uint16(v)|uint16(high[i])<<8)
	}
	return values
}
