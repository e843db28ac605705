package dracojpeg

import (
	"fmt"
	"slices"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/jpeg"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// images decodes the colours, as jpeg.Decoder does.
type images interface {
	Decode(pixels, data []byte, image jpeg.Image) error
}

func newDecoder(colors images) *decoder {
	return &decoder{geometry: geometry.NewDecoder().(codec.Announcer), images: colors}
}

type decoder struct {
	geometry codec.Announcer
	images   images
	image    []byte
}

// Announced implements codec.Announcer.
func (d *decoder) Announced(data []byte) (int, error) { return announced(d.geometry, data) }

// Decode replaces the cloud's points by the frame's.
func (d *decoder) Decode(cloud *pointcloud.Cloud, data []byte) error {
	cloud.Reset()
	if len(data) == 0 {
		return nil
	}
	if err := d.decode(cloud, data); err != nil {
		cloud.Reset()
		return fmt.Errorf("decode draco+jpeg: %w", err)
	}
	return nil
}

func (d *decoder) decode(cloud *pointcloud.Cloud, data []byte) error {
	f, err := decodeGeometry(d.geometry, cloud, data)
	if err != nil || f.quality == 0 {
		return err
	}
	l := layoutOf(cloud.Len())
	d.image = slices.Grow(d.image[:0], l.size())[:l.size()]
	form := jpeg.Image{Width: l.width, Height: l.height, Quality: f.quality}
	if err := d.images.Decode(d.image, f.image, form); err != nil {
		return fmt.Errorf("colours of %d points: %w", cloud.Len(), err)
	}
	l.read(cloud.Colors, d.image)
	return nil
}
