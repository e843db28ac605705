//go:build cgo

package main

// #include "boundary.h"
import "C"

import (
	"fmt"
	"image"
	"math"
	"unsafe"

	"github.com/volsfu/volsfu/clients/c/internal/guest"
	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// rays contains the rays of a raster's pixels, which are computed again only if the raster is another part of the image
// or of another camera.
type rays struct {
	camera    depth.Camera
	reduction int
	rect      image.Rectangle
	at        [][2]float32
}

// of returns the rays of a raster.
func (r *rays) of(raster *codec.Raster) [][2]float32 {
	camera := raster.Camera
	camera.Pose = depth.Pose{}
	if r.camera == camera && r.reduction == raster.Reduction && r.rect == raster.Rect {
		return r.at
	}
	r.camera, r.reduction, r.rect, r.at = camera, raster.Reduction, raster.Rect, r.at[:0]
	for row := range raster.Rect.Dy() {
		for column := range raster.Rect.Dx() {
			x, y, ok := camera.Deproject(raster.Pixel(column, row))
			if !ok {
				x, y = math.NaN(), math.NaN()
			}
			r.at = append(r.at, [2]float32{float32(x), float32(y)})
		}
	}
	return r.at
}

//export volsfu_decode_raster
func volsfu_decode_raster(
	name *C.volsfu_text, data *C.volsfu_bytes, length C.size_t, out *C.volsfu_raster,
) C.int32_t {
	return guarded(func() error {
		if err := given("codec", name); err != nil {
			return err
		}
		frame, err := list("bytes", (*byte)(unsafe.Pointer(data)), uint64(length), math.MaxInt32)
		if err != nil {
			return err
		}
		to, err := pixelsOf(out)
		if err != nil {
			return err
		}
		if len(frame) == 0 {
			out.count, out.width, out.height = 0, 0, 0
			return nil
		}
		fourCC := *(*volumetric.FourCC)(unsafe.Pointer(name))
		return withCoder(fourCC, func(c *coder) error {
			decoder, ok := c.decoder.(codec.RasterDecoder)
			if !ok {
				return fmt.Errorf("%w: frames of codec %v have no raster", guest.ErrArgument, fourCC)
			}
			if err := decoder.DecodeRaster(&c.raster, frame); err != nil {
				return err
			}
			r := &c.raster
			out.count, out.width, out.height =
				C.size_t(len(r.Depths)), C.uint32_t(r.Rect.Dx()), C.uint32_t(r.Rect.Dy())
			if len(r.Depths) > int(out.capacity) {
				return fmt.Errorf("%w: room for %d pixels, expected at least %d", errBuffer, uint64(out.capacity),
					len(r.Depths))
			}
			describe(r, out)
			copy(to.depths, r.Depths)
			to.colors.writeColors(r.Colors)
			if to.rays != nil {
				copy(to.rays, c.rays.of(r))
			}
			return nil
		})
	})
}

// pixels are the arrays of a program. An array that the program does not have is nil.
type pixels struct {
	depths []float32
	colors points
	rays   [][2]float32
}

// pixelsOf returns the arrays of a struct.
func pixelsOf(r *C.volsfu_raster) (pixels, error) {
	var read pixels
	if err := sized("raster", r, func(r *C.volsfu_raster) C.uint32_t { return r.size }); err != nil {
		return read, err
	}
	if uint64(r.capacity) > maxPoints {
		return read, fmt.Errorf("%w: %d pixels, expected at most %d", guest.ErrArgument, uint64(r.capacity), maxPoints)
	}
	var err error
	if read.colors.colorBytes, err = colorBytes(r.color_bytes); err != nil {
		return read, err
	}
	n := int(r.capacity)
	if r.depths != nil {
		read.depths = unsafe.Slice((*float32)(unsafe.Pointer(r.depths)), n)
	}
	if r.colors != nil {
		read.colors.colors = unsafe.Slice((*byte)(unsafe.Pointer(r.colors)), n*read.colors.colorBytes)
	}
	if r.rays != nil {
		read.rays = unsafe.Slice((*[2]float32)(unsafe.Pointer(r.rays)), n)
	}
	return read, nil
}

// describe stores the camera of a raster and the place of the raster in its image.
func describe(from *codec.Raster, to *C.volsfu_raster) {
	c := &from.Camera
	to.camera, to.reduction = C.uint32_t(from.ID), C.uint32_t(from.Reduction)
	to.left, to.top = C.uint32_t(from.Rect.Min.X), C.uint32_t(from.Rect.Min.Y)
	to.camera_width, to.camera_height = C.uint32_t(c.Width), C.uint32_t(c.Height)
	to.distortion = C.uint32_t(c.Distortion.Model)
	to.focal, to.centre = [2]C.double{C.double(c.FX), C.double(c.FY)}, [2]C.double{C.double(c.CX), C.double(c.CY)}
	for i, v := range c.Distortion.Coefficients {
		to.coefficients[i] = C.double(v)
	}
	rotation := c.Pose.Rotation
	if rotation == ([3][3]float64{}) {
		rotation = [3][3]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}
	}
	for i := range 3 {
		to.position[i] = C.double(c.Pose.Translation[i])
		for j := range 3 {
			to.rotation[3*i+j] = C.double(rotation[i][j])
		}
	}
}
