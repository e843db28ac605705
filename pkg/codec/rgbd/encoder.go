package rgbd

import (
	"encoding/binary"
	"fmt"
	"image"
	"math"
	"slices"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/jpeg"
	"github.com/volsfu/volsfu/pkg/codec/webp"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// ErrCloud is the error of encoding a cloud, which has no raster. ErrCloud wraps codec.ErrParams.
var ErrCloud = fmt.Errorf("%w: rgbd encodes the images of depth cameras and no clouds; expected a source with "+
	"rasters: rgbd, kinect, realsense, or a replay of images", codec.ErrParams)

// planesOffset is the offset of the size of mask and depths in a head.
const planesOffset = 36

// encoder implements codec.RasterEncoder.
type encoder struct {
	grid    grid
	planes  planeCoder
	painter painter
	jpeg    jpeg.Encoder
	webp    webp.Encoder
	rays    rays
	reducer reducer
	steps   steps
	pixels  []byte
}

// Encode returns ErrCloud, except for a cloud without points.
func (e *encoder) Encode(dst []byte, cloud *pointcloud.Cloud, _ codec.Params) ([]byte, error) {
	if cloud.Len() == 0 {
		return dst, nil
	}
	return dst, fmt.Errorf("encode rgbd: %w", ErrCloud)
}

// EncodeRaster implements codec.RasterEncoder.
func (e *encoder) EncodeRaster(dst []byte, camera *depth.Camera, from *depth.Image, params codec.RasterParams) ([]byte,
	int, error) {
	frame, points, err := e.encode(dst, camera, from, params)
	if err != nil {
		return dst, 0, fmt.Errorf("encode rgbd: %w", err)
	}
	return frame, points, nil
}

func (e *encoder) encode(dst []byte, camera *depth.Camera, from *depth.Image, params codec.RasterParams) ([]byte, int,
	error) {
	if err := e.check(camera, from, params); err != nil {
		return dst, 0, err
	}
	view := part{depths: from.Depth, colors: from.Colors, stride: camera.Width, rect: params.Rect}
	if params.Reduction > 0 {
		view = e.reducer.reduce(view, params.Reduction)
	}
	view = view.tight()
	if view.rect.Empty() {
		return dst, 0, nil
	}
	h := head{growing: params.Growing, reduction: params.Reduction, id: params.CameraID, camera: rounded(camera),
		rect: view.rect, step: float32(params.Step)}
	e.steps.reset(camera.Unit, float64(h.step), params.Growing)
	if err := e.fill(&h, view); err != nil || h.points == 0 {
		return dst, 0, err
	}
	quality := params.ColorQuality
	if quality == 0 {
		quality = codec.DefaultColorQuality
	}
	switch {
	case params.NoColors:
	case params.WebP:
		h.kind = kindWebP
	case params.File:
		h.kind = kindFile
	default:
		h.kind, h.quality = kindTables, quality
	}
	return e.write(dst, &h, view, quality)
}

// write appends a frame whose head and grid are complete but for the sizes. quality is that of the colours.
func (e *encoder) write(dst []byte, h *head, view part, quality int) ([]byte, int, error) {
	begin := len(dst)
	frame := h.appendTo(dst)
	planes := len(frame)
	frame = e.planes.encode(frame, &e.grid)
	binary.LittleEndian.PutUint32(frame[begin+planesOffset:], uint32(len(frame)-planes))
	if h.kind != kindNone {
		e.pixels = view.copyColors(e.pixels)
		e.painter.paint(e.pixels, &e.grid)
		var err error
		if h.kind == kindWebP {
			frame, err = e.webp.Append(frame, e.pixels, e.grid.columns, e.grid.rows, quality)
		} else {
			start := len(frame)
			frame, err = e.jpeg.Append(frame, e.pixels, jpeg.Image{Width: e.grid.columns, Height: e.grid.rows,
				Quality: quality, Tables: h.kind == kindFile})
			// A plain wall needs few bytes.
			frame = lengthen(frame, start, codec.MissingBytes(len(frame)-begin, h.pixels()))
		}
		if err != nil {
			return dst, 0, err
		}
	}
	if most := codec.MostPoints(len(frame)-begin, codec.MaxPoints); h.pixels() > most {
		return dst, 0, fmt.Errorf("%w: rectangle of %d pixels takes %d bytes, which may have at most %d pixels",
			codec.ErrParams, h.pixels(), len(frame)-begin, most)
	}
	return frame, h.points, nil
}

// lengthen adds comments (COM) of at least the number of bytes to the JPEG image that starts at an offset of a frame,
// behind the start of the image.
func lengthen(frame []byte, start, bytes int) []byte {
	const (
		startBytes, headBytes = 2, 4
		longest               = math.MaxUint16 - 2
	)
	for ; bytes > 0; bytes -= headBytes + longest {
		segment := make([]byte, headBytes+min(max(bytes-headBytes, 0), longest))
		segment[0], segment[1] = 0xff, 0xfe
		binary.BigEndian.PutUint16(segment[2:], uint16(len(segment)-2))
		frame = slices.Insert(frame, start+startBytes, segment...)
	}
	return frame
}

func (e *encoder) check(camera *depth.Camera, from *depth.Image, params codec.RasterParams) error {
	if err := camera.Validate(); err != nil {
		return fmt.Errorf("%w: %w", codec.ErrParams, err)
	}
	if err := from.Validate(camera); err != nil {
		return fmt.Errorf("%w: %w", codec.ErrParams, err)
	}
	if err := params.Validate(camera); err != nil {
		return err
	}
	switch {
	case !params.NoColors && len(from.Colors) == 0:
		return fmt.Errorf("%w: image has no colours, expected NoColors", codec.ErrParams)
	case camera.Width > math.MaxUint16 || camera.Height > math.MaxUint16:
		return fmt.Errorf("%w: image has %d×%d pixels, expected at most %d in each direction", codec.ErrParams,
			camera.Width, camera.Height, math.MaxUint16)
	}
	most := jpeg.MaxEdge
	if params.WebP {
		most = webp.MaxEdge
	}
	if max(params.Rect.Dx(), params.Rect.Dy()) > most {
		return fmt.Errorf("%w: rectangle is %v, expected at most %d pixels in each direction", codec.ErrParams,
			params.Rect, most)
	}
	return nil
}

// rounded returns a camera with the precision of a frame.
func rounded(camera *depth.Camera) depth.Camera {
	c := *camera
	for _, v := range []*float64{&c.FX, &c.FY, &c.CX, &c.CY, &c.Distortion.Radius} {
		*v = float64(float32(*v))
	}
	for i, k := range c.Distortion.Coefficients {
		c.Distortion.Coefficients[i] = float64(float32(k))
	}
	return c
}

// fill fills the grid with the depths of a part, and sets the number of points and the nearest depth of the head.
func (e *encoder) fill(h *head, view part) error {
	g := &e.grid
	g.reset(view.rect.Dx(), view.rect.Dy())
	e.rays.cover(h)
	least, most := uint32(math.MaxUint32), uint32(0)
	for y := range g.rows {
		row := g.row(y)
		valid, codes := g.valid[row:][:g.columns], g.codes[row:][:g.columns]
		for x, d := range view.row(y)[:g.columns] {
			if d == 0 || !e.rays.sees(x, y) {
				continue
			}
			step := e.steps.of[d]
			least, most = min(least, step), max(most, step)
			valid[x], codes[x] = 1, int32(step)
			h.points++
		}
	}
	if h.points == 0 {
		return nil
	}
	h.nearest = least
	if h.growing {
		h.nearest = most
	}
	if limit := h.mostCode(); int64(most-least) > int64(limit) {
		return fmt.Errorf("%w: depths are %d steps of %g apart, expected at most %d and %g m", codec.ErrParams,
			most-least, h.step, limit, float64(maxDepth))
	}
	for at, v := range g.valid {
		if v == 0 {
			continue
		}
		if h.growing {
			g.codes[at] = int32(h.nearest) - g.codes[at]
		} else {
			g.codes[at] -= int32(h.nearest)
		}
	}
	return nil
}

// steps contains, for each depth of a camera, the nearest depth of a frame in steps.
type steps struct {
	of         []uint32
	unit, step float64
	growing    bool
}

// reset computes the table, unless it is there.
func (s *steps) reset(unit, step float64, growing bool) {
	if s.of != nil && s.unit == unit && s.step == step && s.growing == growing {
		return
	}
	s.unit, s.step, s.growing = unit, step, growing
	s.of = slices.Grow(s.of[:0], math.MaxUint16+1)[:math.MaxUint16+1]
	s.of[0] = 0
	for d := 1; d < len(s.of); d++ {
		number := float64(d) * unit / step
		if growing {
			number = 1 / (float64(d) * unit * step)
		}
		s.of[d] = uint32(min(math.MaxInt32, max(1, math.Floor(number+0.5))))
	}
}

// part is a rectangle of an image.
type part struct {
	depths []uint16
	colors [][channels]uint8
	stride int
	// rect is the rectangle, and origin the pixel of the first element.
	rect   image.Rectangle
	origin image.Point
}

// at returns the index of the first pixel of a row.
func (p *part) at(y int) int { return (p.rect.Min.Y+y-p.origin.Y)*p.stride + p.rect.Min.X - p.origin.X }

// row returns the depths of a row.
func (p *part) row(y int) []uint16 { return p.depths[p.at(y):][:p.rect.Dx()] }

// tight returns the smallest part with the same points.
func (p part) tight() part {
	box := image.Rectangle{Min: p.rect.Max, Max: p.rect.Min}
	for y := range p.rect.Dy() {
		row := p.row(y)
		first, last := 0, len(row)-1
		for first < len(row) && row[first] == 0 {
			first++
		}
		if first == len(row) {
			continue
		}
		for row[last] == 0 {
			last--
		}
		box.Min.X, box.Max.X = min(box.Min.X, p.rect.Min.X+first), max(box.Max.X, p.rect.Min.X+last+1)
		box.Min.Y, box.Max.Y = min(box.Min.Y, p.rect.Min.Y+y), p.rect.Min.Y+y+1
	}
	p.rect = box
	return p
}

// copyColors replaces pixels by the colours of the part.
func (p *part) copyColors(pixels []byte) []byte {
	size := channels * p.rect.Dx() * p.rect.Dy()
	pixels = slices.Grow(pixels[:0], size)[:size]
	rest := pixels
	for y := range p.rect.Dy() {
		for _, c := range p.colors[p.at(y):][:p.rect.Dx()] {
			*(*[channels]uint8)(rest) = c
			rest = rest[channels:]
		}
	}
	return pixels
}
