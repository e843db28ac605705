//go:build cgo && !portable

package dracojpeg

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/pkg/codec/jpeg"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// portable is the codec with the decoder of programs without cgo.
type portable struct{ dracojpeg }

func (portable) NewDecoder() codec.Decoder {
	return newDecoder(new(jpeg.Portable))
}

// TestPortable runs the tests of every codec on the decoder in Go.
func TestPortable(t *testing.T) { codectest.TestUnregistered(t, portable{}) }

// TestPortableColors compares the colours of both decoders: their transforms round in different ways.
func TestPortableColors(t *testing.T) {
	d := portable{}.NewDecoder()
	for _, quality := range []int{1, 50, 85, 85, 100} {
		for _, points := range []int{1, 257, 4097, 20000} {
			frame := mustEncode(t, shaded(points), params(quality))
			want, got := mustDecode(t, frame), new(pointcloud.Cloud)
			if err := d.Decode(got, frame); err != nil || !slices.Equal(got.Positions, want.Positions) {
				t.Fatalf("%d points at quality %d: %v, %d points", points, quality, err, got.Len())
			}
			for i, color := range got.Colors {
				for channel, v := range color {
					if math.Abs(float64(v)-float64(want.Colors[i][channel])) > 4 {
						t.Fatalf("point %d is %v, want about %v", i, color, want.Colors[i])
					}
				}
			}
		}
	}
}

// FuzzPortable expects for any frame either an error that wraps ErrMalformed and no points, or as many colours as
// points.
func FuzzPortable(f *testing.F) {
	f.Add(mustEncode(f, shaded(300), params(85)))
	codectest.Seeds(f, dracojpeg{}.FourCC())
	f.Fuzz(func(t *testing.T, data []byte) {
		cloud := new(pointcloud.Cloud)
		err := codectest.Decode(t, portable{}.NewDecoder(), cloud, data)
		if len(cloud.Colors) != cloud.Len() || err != nil && !errors.Is(err, codec.ErrMalformed) {
			t.Fatalf("%d colours of %d points, %v", len(cloud.Colors), cloud.Len(), err)
		}
	})
}
