package rgbd

import (
	"encoding/binary"
	"fmt"
	"image"
	"math"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/codec"
)

const (
	version = 1
	// fixedBytes is the size of a head without pose and distortion, poseBytes and distortionBytes the size of these.
	fixedBytes      = 56
	poseBytes       = 28
	distortionBytes = 36
)

// The flags of a head.
const (
	flagGrowing = 1 << iota
	flagPose
	flagDistortion
	flags = 1<<iota - 1
)

// The kinds of colours.
const (
	kindNone = iota
	kindTables
	kindFile
	kindWebP
)

// head is the start of a frame; the package comment contains the format.
type head struct {
	growing   bool
	reduction int
	kind      uint8
	quality   int
	id        uint32
	camera    depth.Camera
	// rect is the rectangle in pixels of the reduced raster.
	rect   image.Rectangle
	points int
	// nearest is the depth of code 0 in steps, and step the step.
	nearest uint32
	step    float32
	// planes is the size of mask and depths in bytes.
	planes int
}

// pixels returns the number of pixels of the rectangle.
func (h *head) pixels() int { return h.rect.Dx() * h.rect.Dy() }

// appendTo appends the head to dst.
func (h *head) appendTo(dst []byte) []byte {
	set := uint8(0)
	if h.growing {
		set |= flagGrowing
	}
	posed := h.camera.Pose != depth.Pose{}
	if posed {
		set |= flagPose
	}
	d := &h.camera.Distortion
	if d.Model != depth.None {
		set |= flagDistortion
	}
	dst = append(dst, version, set, uint8(h.reduction), h.kind, uint8(h.quality), uint8(d.Model), 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, h.id)
	for _, v := range [6]int{h.camera.Width, h.camera.Height, h.rect.Min.X, h.rect.Min.Y, h.rect.Dx(), h.rect.Dy()} {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(v))
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(h.points))
	dst = binary.LittleEndian.AppendUint32(dst, h.nearest)
	dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(h.step))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(h.planes))
	c := &h.camera
	dst = appendFloats(dst, c.FX, c.FY, c.CX, c.CY)
	if posed {
		q := c.Pose.Quaternion()
		t := &c.Pose.Translation
		dst = appendFloats(dst, t[0], t[1], t[2], q[0], q[1], q[2], q[3])
	}
	if d.Model != depth.None {
		dst = appendFloats(dst, d.Coefficients[:]...)
		dst = appendFloats(dst, d.Radius)
	}
	return dst
}

func appendFloats(dst []byte, values ...float64) []byte {
	for _, v := range values {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(v)))
	}
	return dst
}

// parse parses and checks a head and returns the bytes behind it. Errors wrap codec.ErrMalformed, or codec.ErrUnknown
// for another version.
func (h *head) parse(data []byte) (rest []byte, err error) {
	if len(data) < fixedBytes {
		return nil, fmt.Errorf("%w: frame has %d bytes, expected at least %d", codec.ErrMalformed, len(data),
			fixedBytes)
	}
	set := data[1]
	switch {
	case data[0] != version:
		return nil, fmt.Errorf("%w: version %d of rgbd, expected %d", codec.ErrUnknown, data[0], version)
	case set > flags || data[2] > codec.MaxReduction || data[3] > kindWebP || data[6]|data[7] != 0:
		return nil, fmt.Errorf("%w: head begins with % x, expected flags of at most %d, reduction of at most %d, "+
			"colours of kind 0 to %d and zeros", codec.ErrMalformed, data[:8], flags, codec.MaxReduction, kindWebP)
	}
	size := fixedBytes
	if set&flagPose != 0 {
		size += poseBytes
	}
	if set&flagDistortion != 0 {
		size += distortionBytes
	}
	if len(data) < size {
		return nil, fmt.Errorf("%w: frame has %d bytes, expected a head of %d", codec.ErrMalformed, len(data), size)
	}
	*h = head{
		growing: set&flagGrowing != 0, reduction: int(data[2]), kind: data[3], quality: int(data[4]),
		id:      binary.LittleEndian.Uint32(data[8:]),
		nearest: binary.LittleEndian.Uint32(data[28:]),
		step:    math.Float32frombits(binary.LittleEndian.Uint32(data[32:])),
	}
	var sizes [6]int
	for i := range sizes {
		sizes[i] = int(binary.LittleEndian.Uint16(data[12+2*i:]))
	}
	h.rect = image.Rect(sizes[2], sizes[3], sizes[2]+sizes[4], sizes[3]+sizes[5])
	h.camera = depth.Camera{Width: sizes[0], Height: sizes[1],
		FX: float(data[40:]), FY: float(data[44:]), CX: float(data[48:]), CY: float(data[52:])}
	if err := h.parseCamera(data[fixedBytes:size], set, data[5]); err != nil {
		return nil, err
	}
	rest = data[size:]
	if err := h.check(binary.LittleEndian.Uint32(data[24:]), binary.LittleEndian.Uint32(data[36:]), len(data),
		len(rest)); err != nil {
		return nil, err
	}
	return rest, nil
}

func float(data []byte) float64 {
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(data)))
}

// parseCamera parses pose and distortion and checks the camera.
func (h *head) parseCamera(data []byte, set, model uint8) error {
	c := &h.camera
	if set&flagPose != 0 {
		var q [4]float64
		for i := range c.Pose.Translation {
			c.Pose.Translation[i] = float(data[4*i:])
		}
		for i := range q {
			q[i] = float(data[12+4*i:])
		}
		norm := q[0]*q[0] + q[1]*q[1] + q[2]*q[2] + q[3]*q[3]
		rotation, ok := depth.Rotation(q)
		if !ok || !(math.Abs(norm-1) < 1e-3) {
			return fmt.Errorf("%w: quaternion of the pose is %v, expected length 1", codec.ErrMalformed, q)
		}
		c.Pose.Rotation = rotation
		data = data[poseBytes:]
	}
	if set&flagDistortion != 0 {
		for i := range c.Distortion.Coefficients {
			c.Distortion.Coefficients[i] = float(data[4*i:])
		}
		c.Distortion.Model, c.Distortion.Radius = depth.Model(model), float(data[32:])
	}
	if (model == 0) != (set&flagDistortion == 0) {
		return fmt.Errorf("%w: distortion model is %d with flags %d, expected 0 without distortion only",
			codec.ErrMalformed, model, set)
	}
	// A camera of a frame has no unit: depths have steps.
	checked := *c
	checked.Unit = 1e-3
	if err := checked.Validate(); err != nil {
		return fmt.Errorf("%w: %w", codec.ErrMalformed, err)
	}
	return nil
}

// check checks the numbers of a head against each other and the sizes of frame and rest.
func (h *head) check(points, planes uint32, frame, rest int) error {
	edge := 1 << h.reduction
	raster := image.Rect(0, 0, (h.camera.Width+edge-1)/edge, (h.camera.Height+edge-1)/edge)
	switch most := codec.MostPoints(frame, codec.MaxPoints); {
	case h.rect.Empty() || !h.rect.In(raster):
		return fmt.Errorf("%w: rectangle is %v, expected pixels within %v", codec.ErrMalformed, h.rect, raster)
	case h.pixels() > most:
		return fmt.Errorf("%w: %d pixels in %d bytes, expected at most %d", codec.ErrMalformed, h.pixels(), frame, most)
	case points == 0 || uint64(points) > uint64(h.pixels()):
		return fmt.Errorf("%w: %d points, expected 1 to %d", codec.ErrMalformed, points, h.pixels())
	case !(h.step >= codec.MinStep && h.step <= codec.MaxStep):
		return fmt.Errorf("%w: step is %g, expected %g to %g", codec.ErrMalformed, h.step, float64(codec.MinStep),
			float64(codec.MaxStep))
	case h.nearest == 0 || !(h.depth(0) <= maxDepth):
		return fmt.Errorf("%w: nearest depth is %d steps of %g, expected more than 0 and at most %g m",
			codec.ErrMalformed, h.nearest, h.step, float64(maxDepth))
	case planes == 0 || uint64(planes) > uint64(rest):
		return fmt.Errorf("%w: mask and depths have %d bytes, expected 1 to %d", codec.ErrMalformed, planes, rest)
	case (h.kind == kindTables) != (h.quality > 0) || h.quality > 100:
		return fmt.Errorf("%w: quality is %d for colours of kind %d, expected 1 to 100 for kind %d and 0 for others",
			codec.ErrMalformed, h.quality, h.kind, kindTables)
	case h.kind == kindNone && int(planes) != rest:
		return fmt.Errorf("%w: %d bytes behind the depths of a frame without colours, expected none",
			codec.ErrMalformed, rest-int(planes))
	}
	h.points, h.planes = int(points), int(planes)
	return nil
}

// maxDepth is the largest depth in metres. Beyond it, float32 coordinates have steps of a millimetre.
const maxDepth = 1e4

// depth returns the depth of a code in metres.
func (h *head) depth(code int32) float64 {
	if h.growing {
		return 1 / (float64(h.step) * float64(int64(h.nearest)-int64(code)))
	}
	return float64(h.step) * float64(int64(h.nearest)+int64(code))
}

// mostCode returns the largest code whose depth is valid.
func (h *head) mostCode() int32 {
	if h.growing {
		// 1/maxDepth is the least product of step and nearest - code.
		least := int64(math.Ceil(1 / (maxDepth * float64(h.step))))
		return int32(min(mostCode, int64(h.nearest)-max(1, least)))
	}
	return int32(min(mostCode, int64(maxDepth/float64(h.step))-int64(h.nearest)))
}
