package raster

import (
	"context"
	"fmt"
	"image"
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/rgbd"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/pointcloud/fidelity"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// film is a number of frames of one or several cameras. camera is the first.
type film struct {
	camera  depth.Camera
	cameras []depth.Camera
	box     volumetric.BoundingBox
	frames  []capture.Frame
	// truth contains the points of each frame without the errors of the camera; empty for those of the frame.
	truth []capture.Frame
}

// atOnce is a clock on which nothing takes time, so that no frame is skipped.
type atOnce struct{ now time.Time }

// Now implements capture.Clock.
func (c *atOnce) Now() time.Time { return c.now }

// Wait implements capture.Clock.
func (c *atOnce) Wait(ctx context.Context, until time.Time) error {
	if c.now.Before(until) {
		c.now = until
	}
	return ctx.Err()
}

// shoot reads the first frames of a source of depth cameras.
func shoot(ctx context.Context, spec string, o capture.Options, frames int) (*film, error) {
	o.Rasters = true
	source, err := capture.OpenOn(&atOnce{time.Unix(0, 0)}, spec, o)
	if err != nil {
		return nil, err
	}
	defer func() { _ = source.Close() }()
	cameras := source.Info().Cameras
	f := &film{camera: cameras[0], cameras: cameras, box: source.Info().Box, frames: make([]capture.Frame, frames)}
	for i := range f.frames {
		if err := source.Read(ctx, &f.frames[i]); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// measured are the means over the frames of a film: bits per point, bits per frame, errors in dB, and milliseconds per
// frame of one core.
type measured struct {
	bits, frameBits float64
	d1, d2, luma    float64
	encode, decode  float64
}

// rate returns the bitrate in Mbit/s.
func (m *measured) rate() float64 { return m.frameBits * frameRate / 1e6 }

// coding codes one frame: encode returns its size, and decode its points.
type coding struct {
	encode func(frame *capture.Frame) (bytes int, err error)
	decode func(into *pointcloud.Cloud) error
}

// measureCloud measures a codec of clouds at 11 bits and speed 10, in one tile and in the box of all frames.
func (f *film) measureCloud(b *bench, name string) (measured, error) {
	c, err := codec.ByName(name)
	if err != nil {
		return measured{}, err
	}
	encoder, decoder := c.NewEncoder(), c.NewDecoder()
	params := codec.Params{PositionBits: 11, Speed: 10, Box: f.box}
	var data []byte
	return f.measure(b, true, coding{
		encode: func(frame *capture.Frame) (int, error) {
			data, err = encoder.Encode(data[:0], &frame.Cloud, params)
			return len(data), err
		},
		decode: func(into *pointcloud.Cloud) error { return decoder.Decode(into, data) },
	})
}

// measureRaster measures rgbd with a number of rectangles of each camera, those of the first frame.
func (f *film) measureRaster(b *bench, tiles int, params codec.RasterParams, compared bool) (measured, error) {
	var rects []image.Rectangle
	for i := range f.cameras {
		cut, err := rgbd.Rectangles(&f.cameras[i], &f.frames[0].Rasters[i], tiles)
		if err != nil {
			return measured{}, err
		}
		rects = append(rects, cut...)
	}
	encoder, decoder := rgbd.Codec.NewEncoder().(codec.RasterEncoder), rgbd.Codec.NewDecoder()
	data := make([][]byte, len(rects))
	var part pointcloud.Cloud
	return f.measure(b, compared, coding{
		encode: func(frame *capture.Frame) (bytes int, err error) {
			for i, rect := range rects {
				if params.Rect = rect; rect.Empty() {
					continue
				}
				camera := i / tiles
				data[i], _, err = encoder.EncodeRaster(data[i][:0], &f.cameras[camera], &frame.Rasters[camera], params)
				if err != nil {
					return 0, err
				}
				bytes += len(data[i])
			}
			return bytes, nil
		},
		decode: func(into *pointcloud.Cloud) error {
			into.Reset()
			for _, tile := range data {
				if err := decoder.Decode(&part, tile); err != nil {
					return err
				}
				appendTo(into, &part)
			}
			return nil
		},
	})
}

// measure measures a coding of all frames. Times are the means of each frame's least. Errors are the means over the
// compared frames.
func (f *film) measure(b *bench, compared bool, c coding) (m measured, err error) {
	var decoded pointcloud.Cloud
	every := max(1, len(f.frames)/max(1, b.options.Compared))
	compares := 0
	for i := range f.frames {
		frame := &f.frames[i]
		encode, decode := math.Inf(1), math.Inf(1)
		bytes := 0
		for range b.options.Repeats {
			begun := time.Now()
			if bytes, err = c.encode(frame); err != nil {
				return m, err
			}
			encoded := time.Now()
			if err = c.decode(&decoded); err != nil {
				return m, err
			}
			encode = min(encode, encoded.Sub(begun).Seconds()*1000)
			decode = min(decode, time.Since(encoded).Seconds()*1000)
		}
		n := float64(len(f.frames))
		m.bits += 8 * float64(bytes) / float64(frame.Cloud.Len()) / n
		m.frameBits += 8 * float64(bytes) / n
		m.encode += encode / n
		m.decode += decode / n
		if compared && i%every == 0 {
			e, err := errorsOf(f.reference(i), &decoded)
			if err != nil {
				return m, err
			}
			m.d1, m.d2, m.luma = m.d1+e.PointToPoint.PSNR, m.d2+e.PointToPlane.PSNR, m.luma+e.Color.Y
			compares++
		}
	}
	if compares > 0 {
		m.d1, m.d2, m.luma = m.d1/float64(compares), m.d2/float64(compares), m.luma/float64(compares)
	}
	return m, nil
}

// reference returns the points with which those of a frame are compared.
func (f *film) reference(frame int) *pointcloud.Cloud {
	if len(f.truth) > 0 {
		return &f.truth[frame].Cloud
	}
	return &f.frames[frame].Cloud
}

// errorsOf compares decoded points with those captured.
func errorsOf(captured, decoded *pointcloud.Cloud) (fidelity.Measures, error) {
	reference, err := fidelity.NewReference(captured)
	if err != nil {
		return fidelity.Measures{}, fmt.Errorf("captured points: %w", err)
	}
	return reference.Compare(decoded)
}
