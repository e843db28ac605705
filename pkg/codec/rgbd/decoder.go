package rgbd

import (
	"fmt"
	"slices"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/jpeg"
	"github.com/volsfu/volsfu/pkg/codec/webp"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// decoder implements codec.RasterDecoder and codec.Announcer.
type decoder struct {
	grid   grid
	planes planeCoder
	jpeg   jpeg.Decoder
	webp   webp.Decoder
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
	if h.kind == kindWebP {
		return h, d.webp.Decode(d.pixels, rest[h.planes:], form.Width, form.Height)
	}
	return h, d.jpeg.Decode(d.pixels, rest[h.planes:], form)
}

// color returns the colour of a pixel of the rectangle.
func (d *decoder) color(h *head, pixel int) [channels]uint8 {
	if h.kind == kindNone {
		return codec.White
	}
	return [channels]uint8(d.pixels[channels*pixel:])
}

// unproject appends the points of the grid. Points of pixels that see no point of the image plane are left out.
func (d *decoder) unproject(cloud *pointcloud.Cloud, h *head) {
	d.rays.cover(h)
	cloud.Positions = slices.Grow(cloud.Positions[:0], h.points)[:h.points]
	cloud.Colors = slices.Grow(cloud.Colors[:0], h.points)[:h.points]
	points := 0
	for y := range d.grid.rows {
		points += d.unprojectRow(cloud.Positions[points:], cloud.Colors[points:], h, y)
	}
	cloud.Positions, cloud.Colors = cloud.Positions[:points], cloud.Colors[:points]
}

// unprojectRow sets the points of a row and returns their number. The conversions prevent the compiler from fusing
// operations, so that every machine computes the same.
func (d *decoder) unprojectRow(positions [][3]float32, colors [][channels]uint8, h *head, y int) (points int) {
	row := d.grid.row(y)
	valid := d.grid.valid[row:][:d.grid.columns]
	codes := d.grid.codes[row:][:len(valid)]
	across, down := d.rays.row(h, y)
	across = across[:len(valid)]
	back, t := d.rays.back, h.camera.Pose.Translation
	step, nearest := float64(h.step), int64(h.nearest)
	pixels := d.pixels[min(len(d.pixels), channels*y*len(valid)):]
	for x, v := range valid {
		if v == 0 {
			continue
		}
		a := &across[x]
		if a[0] != a[0] {
			continue
		}
		z := step * float64(nearest+int64(codes[x]))
		if h.growing {
			z = 1 / (step * float64(nearest-int64(codes[x])))
		}
		p := &positions[points]
		p[0] = float32(t[0] + float64((a[0]-down[0]-back[0])*z))
		p[1] = float32(t[1] + float64((a[1]-down[1]-back[1])*z))
		p[2] = float32(t[2] + float64((a[2]-down[2]-back[2])*z))
		colors[points] = codec.White
		if h.kind != kindNone {
			colors[points] = [channels]uint8(pixels[channels*x:])
		}
		points++
	}
	return points
}
