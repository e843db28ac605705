package parts

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// decoder decodes the parts of one frame at a time.
type decoder struct {
	inner        codec.Codec
	partDecoders []*partDecoder
	workers      *workers
}

// partDecoder decodes one part. Only one goroutine uses it at a time.
type partDecoder struct {
	decoder codec.Announcer
	data    []byte
	place   pointcloud.Cloud // as many points as the frame announces
	// the decoded points, in the memory of place if the codec decodes to the given memory
	cloud pointcloud.Cloud
	err   error
}

func newDecoder(pool *Pool) *decoder {
	d := &decoder{}
	d.workers = newWorkers(pool, func(i int) { d.partDecoders[i].decode() })
	return d
}

// Decode replaces the cloud's points by the frame's, part after part. If this program does not have
// the codec of the parts, the error wraps codec.ErrUnknown.
func (d *decoder) Decode(cloud *pointcloud.Cloud, data []byte) error {
	cloud.Reset()
	if len(data) == 0 {
		return nil
	}
	if err := d.decode(cloud, data); err != nil {
		cloud.Reset()
		return fmt.Errorf("decode parts: %w", err)
	}
	return nil
}

func (d *decoder) decode(cloud *pointcloud.Cloud, data []byte) error {
	count, points, err := parse(data)
	if err != nil {
		return err
	}
	if err := d.prepare(codec.FourCC(data), count); err != nil {
		return err
	}
	if err := d.check(data, count); err != nil {
		return err
	}
	cloud.Positions = slices.Grow(cloud.Positions, points)[:points]
	cloud.Colors = slices.Grow(cloud.Colors, points)[:points]
	from, rest := 0, data[headerBytes+count*sizeBytes:]
	for i, s := range d.partDecoders[:count] {
		n, size := sizes(data, i)
		s.data, rest = rest[:size], rest[size:]
		s.place = cloud.View(from, from+n)
		from += n
	}
	d.workers.run(count)
	for i, s := range d.partDecoders[:count] {
		// References are dropped, because cloud and data belong to the caller.
		s.place, s.cloud, s.data = pointcloud.Cloud{}, pointcloud.Cloud{}, nil
		if s.err != nil {
			return fmt.Errorf("part %d of %d: %w", i, count, s.err)
		}
	}
	return nil
}

// prepare creates a decoder of the codec for each part.
func (d *decoder) prepare(name codec.FourCC, count int) error {
	if name == fourCC {
		return fmt.Errorf("%w: parts of parts", codec.ErrMalformed)
	}
	if d.inner == nil || d.inner.FourCC() != name {
		inner, err := codec.ByFourCC(name)
		if err != nil {
			return err
		}
		d.inner, d.partDecoders = inner, nil
	}
	for len(d.partDecoders) < count {
		decoder, announces := d.inner.NewDecoder().(codec.Announcer)
		if !announces {
			return fmt.Errorf("%w: parts of %s, whose frames do not announce their number of points",
				codec.ErrMalformed, d.inner.Name())
		}
		d.partDecoders = append(d.partDecoders, &partDecoder{decoder: decoder})
	}
	return nil
}

// check returns an error if the head of a part announces more points than the head of the frame.
// Otherwise 64 parts of a few bytes could contain 65,536 points each, and all of them would be
// decoded before the error is found.
func (d *decoder) check(data []byte, count int) error {
	rest := data[headerBytes+count*sizeBytes:]
	for i, s := range d.partDecoders[:count] {
		n, size := sizes(data, i)
		announced, err := s.decoder.Announced(rest[:size])
		if err != nil {
			return fmt.Errorf("part %d of %d: %w", i, count, err)
		}
		if announced > n {
			return fmt.Errorf("part %d of %d: %w: the part announces %d points, the head says %d", i, count,
				codec.ErrMalformed, announced, n)
		}
		rest = rest[size:]
	}
	return nil
}

// Announced implements codec.Announcer.
func (*decoder) Announced(data []byte) (int, error) {
	_, points, err := parse(data)
	if err != nil {
		return 0, fmt.Errorf("decode parts: %w", err)
	}
	return points, nil
}

// decode decodes one part into its place. The place has no room for more points: a part with more
// points than announced is decoded to other memory.
func (s *partDecoder) decode() {
	s.cloud = s.place
	s.cloud.Reset()
	n := s.place.Len()
	s.err = s.decoder.Decode(&s.cloud, s.data)
	switch {
	case s.err != nil:
	case s.cloud.Len() != n || len(s.cloud.Colors) != n:
		s.err = fmt.Errorf("%w: %d points, the head says %d", codec.ErrMalformed, s.cloud.Len(), n)
	case &s.cloud.Positions[0] != &s.place.Positions[0] || &s.cloud.Colors[0] != &s.place.Colors[0]:
		copy(s.place.Positions, s.cloud.Positions)
		copy(s.place.Colors, s.cloud.Colors)
	}
}

// sizes returns the numbers of points and bytes of a part.
func sizes(data []byte, i int) (points, bytes int) {
	at := data[headerBytes+i*sizeBytes:]
	return int(binary.LittleEndian.Uint32(at)), int(binary.LittleEndian.Uint32(at[4:]))
}

// parse checks the head and the length of the frame.
func parse(data []byte) (count, points int, err error) {
	if len(data) < headerBytes+sizeBytes {
		return 0, 0, fmt.Errorf(
			"%w: %d bytes, expected at least %d",
			codec.ErrMalformed,
			len(data),
			headerBytes+sizeBytes,
		)
	}
	announced := binary.LittleEndian.Uint32(data[4:])
	if announced == 0 || announced > MaxParts || len(data) < headerBytes+int(announced)*sizeBytes {
		return 0, 0, fmt.Errorf(
			"%w: %d parts in %d bytes, expected 1 to %d with %d bytes each in the head",
			codec.ErrMalformed,
			announced,
			len(data),
			MaxParts,
			sizeBytes,
		)
	}
	count = int(announced)
	// 64 parts of 32 bits each: the sums cannot overflow.
	total := uint64(headerBytes + count*sizeBytes)
	all := uint64(0)
	for i := range count {
		at := data[headerBytes+i*sizeBytes:]
		n, size := binary.LittleEndian.Uint32(at), binary.LittleEndian.Uint32(at[4:])
		if n == 0 || size == 0 {
			return 0, 0, fmt.Errorf(
				"%w: part %d has %d points in %d bytes, expected at least 1 of each",
				codec.ErrMalformed,
				i,
				n,
				size,
			)
		}
		all += uint64(n)
		total += uint64(size)
	}
	most := uint64(codec.MostPoints(len(data), maxPoints))
	switch {
	case total != uint64(len(data)):
		return 0, 0, fmt.Errorf("%w: %d bytes, the head says %d", codec.ErrMalformed, len(data), total)
	case all > most:
		return 0, 0, fmt.Errorf(
			"%w: %d points in %d bytes, expected at most %d",
			codec.ErrMalformed,
			all,
			len(data),
			most,
		)
	}
	return count, int(all), nil
}
