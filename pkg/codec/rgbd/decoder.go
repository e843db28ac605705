package rgbd

import (
	"fmt"
	"math"
	"slices"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/jpeg"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// decoder implements codec.RasterDecoder and codec.Announcer.
type decoder struct {
	grid   grid
	planes planeCoder
	jpeg   jpeg.Decoder
	rays   rays
	pixels []byte
}

// Announced implements codec.Announcer.
func (*decoder) Announced(data []byte) (int, error) {
	var h head
	if _, err := h.parse(data); err != nil {
		return 0, fmt.Errorf("decode rgbd: %w", err)
	}
	return h.points, nil
}

// Decode replaces the cloud's points by those of the frame, row by row.
func (d *decoder) Decode(cloud *pointcloud.Cloud, data []byte) error {
	cloud.Reset()
	if len(data) == 0 {
		return nil
	}
	h, err := d.decode(data)
	if err != nil {
		return fmt.Errorf("decode rgbd: %w", err)
	}
	d.unproject(cloud, &h)
	return nil
}

// DecodeRaster implements codec.RasterDecoder.
func (d *decoder) DecodeRaster(raster *codec.Raster, data []byte) error {
	raster.Reset()
	if len(data) == 0 {
		return nil
	}
	h, err := d.decode(data)
	if err != nil {
		return fmt.Errorf("decode rgbd: %w", err)
	}
	raster.Camera, raster.ID, raster.Reduction, raster.Rect = h.camera, h.id, h.reduction, h.rect
	raster.Depths = slices.Grow(raster.Depths, h.pixels())
	raster.Colors = slices.Grow(raster.Colors, h.pixels())
	at := 0
	for y := range d.grid.rows {
		row := d.grid.row(y)
		for x := row; x < row+d.grid.columns; x++ {
			metres := float32(0)
			if d.grid.valid[x] != 0 {
				metres = float32(h.depth(d.grid.codes[x]))
			}
			raster.Depths = append(raster.Depths, metres)
			raster.Colors = append(raster.Colors, d.color(&h, at))
			at++
		}
	}
	return nil
}

// decode decodes a frame into the decoder's grid and pixels.
func (d *decoder) decode(data []byte) (h head, err error) {
	rest, err := h.parse(data)
	if err != nil {
		return h, err
	}
	d.grid.reset(h.rect.Dx(), h.rect.Dy())
	if err := d.planes.decode(&d.grid, rest[:h.planes], h.points, h.mostCode()); err != nil {
		return h, err
	}
	if h.kind == kindNone {
		return h, nil
	}
	form := jpeg.Image{Width: h.rect.Dx(), Height: h.rect.Dy(), Quality: h.quality, Tables: h.kind == kindFile}
	d.pixels = slices.Grow(d.pixels[:0], form.Bytes())[:form.Bytes()]
	return h, d.jpeg.Decode(d.pixels, rest[h.planes:], form)
}

// color returns the colour of a pixel of the rectangle.
func (d *decoder) color(h *head, pixel int) [channels]uint8 {
	if h.kind == kindNone {
		return codec.White
	}
	return [channels]uint8(d.pixels[channels*pixel:])
}

// unproject appends the points of the grid. Points of pixels that see no point of the image plane are left out. The
// conversions prevent the compiler from fusing operations, so that every machine computes the same.
func (d *decoder) unproject(cloud *pointcloud.Cloud, h *head) {
	d.rays.cover(h)
	cloud.Positions = slices.Grow(cloud.Positions, h.points)
	cloud.Colors = slices.Grow(cloud.Colors, h.points)
	r := h.camera.Pose.Rotation
	if r == ([3][3]float64{}) {
		r = [3][3]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}
	}
	t := h.camera.Pose.Translation
	for y := range d.grid.rows {
		row := d.grid.row(y)
		valid, codes := d.grid.valid[row:][:d.grid.columns], d.grid.codes[row:][:d.grid.columns]
		for x, v := range valid {
			if v == 0 {
				continue
			}
			across, down := d.rays.at(x, y)
			if !d.rays.complete && math.IsNaN(across+down) {
				continue
			}
			z := h.depth(codes[x])
			var position [3]float32
			for axis := range position {
				ray := float64(float64(r[axis][0]*across)-float64(r[axis][1]*down)) - r[axis][2]
				position[axis] = float32(t[axis] + float64(ray*z))
			}
			cloud.Positions = append(cloud.Positions, position)
			cloud.Colors = append(cloud.Colors, d.color(h, y*d.grid.columns+x))
		}
	}
}
