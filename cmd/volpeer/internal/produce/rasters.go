package produce

import (
	"fmt"
	"image"
	"math"
	"slices"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/ladder"
	"github.com/volsfu/volsfu/pkg/codec/rgbd"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Rasters describes the tiles and qualities of a codec of rasters.
type Rasters struct {
	// Cameras are the cameras of the source.
	Cameras []depth.Camera
	// Tiles is the number of rectangles of each camera: 1, 2, 4 or 9.
	Tiles int
	// Levels are the qualities, in ascending order.
	Levels []ladder.Raster
	// WebP codes colours as WebP: see codec.RasterParams.
	WebP bool
}

const (
	// rasterMargin is the margin of the boxes of tiles, relative to the object's longest edge: that of tilings of
	// clouds that are learnt.
	rasterMargin = 0.1
	// exactUnits is the number of units of a camera's depth from which on a step need not be a multiple of the unit.
	// The values of the camera would fall on uneven steps.
	exactUnits = 4
)

// rasterCutter cuts the rasters of a frame's cameras into rectangles, which are those of the first frame with points.
// Rectangles keep their places, so that tiles of different frames fit together.
type rasterCutter struct {
	rasters Rasters
	box     volumetric.BoundingBox
	tiles   []rasterTile
	learnt  bool
}

// rasterTile is one rectangle of one camera; an empty rectangle has no points.
type rasterTile struct {
	camera int
	rect   image.Rectangle
	box    volumetric.BoundingBox
}

func newRasterCutter(r Rasters, box volumetric.BoundingBox) (*rasterCutter, error) {
	if err := rgbd.CheckTiles(r.Tiles); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if len(r.Cameras) == 0 || len(r.Cameras) > depth.MaxCameras {
		return nil, fmt.Errorf("%w: %d cameras, expected 1 to %d", ErrConfig, len(r.Cameras), depth.MaxCameras)
	}
	// Levels with a bitrate change.
	r.Levels = slices.Clone(r.Levels)
	c := &rasterCutter{rasters: r, box: box}
	for camera := range r.Cameras {
		for range r.Tiles {
			c.tiles = append(c.tiles, rasterTile{camera: camera, box: box})
		}
	}
	return c, nil
}

// learn sets the rectangles by the first frame with points.
func (c *rasterCutter) learn(frame *capture.Frame) error {
	if c.learnt {
		return nil
	}
	if len(frame.Rasters) != len(c.rasters.Cameras) {
		return fmt.Errorf("%w: frame has rasters of %d cameras, expected %d", ErrConfig, len(frame.Rasters),
			len(c.rasters.Cameras))
	}
	for camera := range c.rasters.Cameras {
		model, raster := &c.rasters.Cameras[camera], &frame.Rasters[camera]
		rects, err := rgbd.Rectangles(model, raster, c.rasters.Tiles)
		if err != nil {
			return err
		}
		c.learnt = c.learnt || slices.ContainsFunc(raster.Depth, func(d uint16) bool { return d != 0 })
		for i, rect := range rects {
			t := &c.tiles[camera*c.rasters.Tiles+i]
			t.rect, t.box = rect, c.boxOf(model, raster, rect)
		}
	}
	return nil
}

// boxOf returns the box of the points of a rectangle with a margin, or that of the object without points.
func (c *rasterCutter) boxOf(camera *depth.Camera, raster *depth.Image, rect image.Rectangle) volumetric.BoundingBox {
	low, high := c.box.Max, c.box.Min
	found := false
	for y := rect.Min.Y; y < rect.Max.Y && len(raster.Depth) > 0; y++ {
		for x := rect.Min.X; x < rect.Max.X; x++ {
			d := float64(raster.Depth[y*camera.Width+x]) * camera.Unit
			across, down, ok := camera.Deproject(float64(x), float64(y))
			if d == 0 || !ok {
				continue
			}
			found = true
			for axis, v := range camera.Pose.Apply([3]float64{across * d, -down * d, -d}) {
				low[axis], high[axis] = min(low[axis], float32(v)), max(high[axis], float32(v))
			}
		}
	}
	if !found {
		return c.box
	}
	margin := float32(0)
	for axis := range 3 {
		margin = max(margin, rasterMargin*(c.box.Max[axis]-c.box.Min[axis]))
	}
	for axis := range 3 {
		low[axis], high[axis] = max(low[axis]-margin, c.box.Min[axis]), min(high[axis]+margin, c.box.Max[axis])
	}
	return volumetric.BoundingBox{Min: low, Max: high}
}

// describe describes the tiles.
func (c *rasterCutter) describe() []volumetric.Tile {
	all := make([]volumetric.Tile, len(c.tiles))
	for i, t := range c.tiles {
		all[i] = volumetric.Tile{Box: t.box,
			Label: c.label(t.camera, i%c.rasters.Tiles)}
	}
	return all
}

// label names the camera and the rectangle of a tile. A camera whose name cannot be in a label has a number.
func (c *rasterCutter) label(camera, rectangle int) string {
	label := fmt.Sprintf("camera %s, rectangle %d", c.rasters.Cameras[camera].Name, rectangle+1)
	if c.rasters.Cameras[camera].Name == "" || volumetric.ValidateName("tile", label) != nil {
		label = fmt.Sprintf("camera %d, rectangle %d", camera+1, rectangle+1)
	}
	return label
}

// take replaces the parameters of a quality and reports whether they differ.
func (c *rasterCutter) take(quality int, r ladder.Raster) bool {
	l := &c.rasters.Levels[quality]
	r.Name, r.Rate = l.Name, l.Rate
	changed := r != *l
	*l = r
	return changed
}

// encode encodes one tile with the parameters of a quality.
func (c *rasterCutter) encode(encoder codec.RasterEncoder, dst []byte, frame *capture.Frame, tile int,
	l ladder.Raster) ([]byte, int, error) {
	t := &c.tiles[tile]
	if t.rect.Empty() || len(frame.Rasters) <= t.camera || len(frame.Rasters[t.camera].Depth) == 0 {
		return dst, 0, nil
	}
	camera := &c.rasters.Cameras[t.camera]
	return encoder.EncodeRaster(dst, camera, &frame.Rasters[t.camera], codec.RasterParams{
		Rect: t.rect, Reduction: l.Reduction, Step: stepFor(l.Step, camera.Unit), ColorQuality: l.ColorQuality,
		CameraID: uint32(t.camera), WebP: c.rasters.WebP,
	})
}

// stepFor returns the step for a camera: a whole number of units unless the step is much coarser than the unit.
func stepFor(step, unit float64) float64 {
	if step >= exactUnits*unit {
		return step
	}
	return unit * max(1, math.Round(step/unit))
}
