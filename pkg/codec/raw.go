package codec

import (
	"fmt"
	"slices"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// Raw is the codec "raw" (FourCC "raw1"): quantized and packed positions without compression. Raw needs no cgo and
// little time, and its frames are two to three times as large as Draco's. Raw ignores Params.Speed and Sequential;
// points keep their order. A frame is a Head followed by
//
//	size        content
//	3·b·points  positions: x, y, z in steps from Min, little-endian, of b = ceil(bits/8) bytes each
//	3·points    colours: red, green, blue; or nothing
//
// Nothing follows. Tiles without points are frames of length 0.
var Raw Codec = raw{}

func init() { Register(Raw) }

type raw struct{}

func (raw) FourCC() FourCC { return FourCC{'r', 'a', 'w', '1'} }
func (raw) Name() string   { return "raw" }
func (raw) Capabilities() Capabilities {
	return Capabilities{Encodes: true, Colors: true, ExactColors: true, Steps: []int{0}, Ordered: true,
		MaxPoints: MaxPoints}
}
func (raw) NewEncoder() Encoder { return rawEncoder{} }
func (raw) NewDecoder() Decoder { return rawDecoder{} }

type rawEncoder struct{}

// coordinateBytes returns the size of one coordinate in bytes.
func coordinateBytes(bits int) int { return (bits + 7) / 8 }

// Encode appends the cloud's frame to dst.
func (rawEncoder) Encode(dst []byte, cloud *pointcloud.Cloud, params Params) ([]byte, error) {
	if err := params.Check(cloud, MaxPoints); err != nil {
		return dst, fmt.Errorf("encode raw: %w", err)
	}
	n := cloud.Len()
	if n == 0 {
		return dst, nil
	}
	width := coordinateBytes(params.PositionBits)
	dst = slices.Grow(dst, HeadBytes+n*3*(width+1))
	dst = Head{Points: uint32(n), Params: params}.AppendTo(dst)
	grid := params.Grid()
	for _, p := range cloud.Positions {
		for _, q := range grid.Steps(p) {
			for b := range width {
				dst = append(dst, uint8(q>>(8*b)))
			}
		}
	}
	if params.NoColors {
		return dst, nil
	}
	for _, color := range cloud.Colors {
		dst = append(dst, color[0], color[1], color[2])
	}
	return dst, nil
}

// EncodeOrdered appends the cloud's frame to dst, with the points in their original order.
func (e rawEncoder) EncodeOrdered(
	dst []byte,
	order []uint32,
	cloud *pointcloud.Cloud,
	params Params,
) ([]byte, []uint32, error) {
	dst, err := e.Encode(dst, cloud, params)
	if err != nil {
		return dst, order[:0], err
	}
	return dst, AppendIdentity(order[:0], cloud.Len()), nil
}

type rawDecoder struct{}

// Announced implements Announcer.
func (rawDecoder) Announced(data []byte) (int, error) {
	head, err := parseRaw(data)
	if err != nil {
		return 0, fmt.Errorf("decode raw: %w", err)
	}
	return int(head.Points), nil
}

// Decode replaces the cloud's points by the frame's.
func (rawDecoder) Decode(cloud *pointcloud.Cloud, data []byte) error {
	cloud.Reset()
	if len(data) == 0 {
		return nil
	}
	head, err := parseRaw(data)
	if err != nil {
		return fmt.Errorf("decode raw: %w", err)
	}
	n, params := int(head.Points), head.Params
	width := coordinateBytes(params.PositionBits)
	positions, colors := data[HeadBytes:HeadBytes+3*n*width], data[HeadBytes+3*n*width:]
	cloud.Positions = slices.Grow(cloud.Positions, n)[:n]
	cloud.Colors = slices.Grow(cloud.Colors, n)[:n]
	grid, largest := params.Grid(), params.steps()
	for i := range cloud.Positions {
		var steps [3]uint32
		for axis := range steps {
			for b := range width {
				steps[axis] |= uint32(positions[(3*i+axis)*width+b]) << (8 * b)
			}
			if steps[axis] > largest {
				cloud.Reset()
				return fmt.Errorf(
					"decode raw: %w: coordinate %d of point %d is %d steps, expected at most %d",
					ErrMalformed,
					axis,
					i,
					steps[axis],
					largest,
				)
			}
		}
		cloud.Positions[i] = grid.Position(steps)
	}
	for i := range cloud.Colors {
		if params.NoColors {
			cloud.Colors[i] = White
		} else {
			cloud.Colors[i] = [3]uint8(colors[3*i:])
		}
	}
	return nil
}

// parseRaw checks the head and the length of the frame.
func parseRaw(data []byte) (Head, error) {
	head, err := ParseHead(data)
	if err != nil {
		return Head{}, err
	}
	if most := MostPoints(len(data), MaxPoints); uint64(head.Points) > uint64(most) {
		return Head{}, fmt.Errorf("%w: %d points in %d bytes, expected at most %d", ErrMalformed, head.Points,
			len(data), most)
	}
	pointBytes := 3 * coordinateBytes(head.Params.PositionBits)
	if !head.Params.NoColors {
		pointBytes += 3
	}
	if want := HeadBytes + uint64(head.Points)*uint64(pointBytes); want != uint64(len(data)) {
		return Head{}, fmt.Errorf(
			"%w: frame of %d points has %d bytes, expected %d",
			ErrMalformed,
			head.Points,
			len(data),
			want,
		)
	}
	return head, nil
}
