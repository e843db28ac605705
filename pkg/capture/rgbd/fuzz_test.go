package rgbd

import (
	"bytes"
	"errors"
	"image"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture/depth"
)

// FuzzReadImages reads arbitrary bytes as the three images of a small camera: the result is an
// error or an image of the camera's size.
func FuzzReadImages(f *testing.F) {
	depths := encode(f, depthImage(8, 6, func(x, y int) uint16 { return uint16(700 + 100*x + y) }))
	colors := encode(f, colorImage(8, 6))
	labels := encode(f, image.NewGray(image.Rect(0, 0, 8, 6)))
	f.Add(depths, colors, labels)
	f.Add(depths[:len(depths)-12], colors, depths)
	f.Add(depths, colors[:50], colors)
	f.Add(colors, depths, labels[:30])
	f.Add(labels, encode(f, image.NewNRGBA64(image.Rect(0, 0, 8, 6))), []byte{})
	f.Add(encode(f, depthImage(9, 6, func(int, int) uint16 { return 1 })), []byte{}, labels)
	in, err := ParseIntrinsics([]byte(plainIntrinsics))
	if err != nil {
		f.Fatal(err)
	}
	camera, err := in.Camera("")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, depths, colors, labels []byte) {
		var m depth.Image
		failed := false
		for _, err := range []error{
			readDepth(bytes.NewReader(depths), in, &m), readColors(bytes.NewReader(colors), in, &m),
			readLabels(bytes.NewReader(labels), in, &m),
		} {
			failed = failed || err != nil
			if err != nil && !errors.Is(err, ErrImage) {
				t.Errorf("error without kind: %v", err)
			}
		}
		if err := m.Validate(&camera); !failed && (err != nil || len(m.Colors) != 48 || len(m.Labels) != 48) {
			t.Errorf(
				"%d depths, %d colours and %d labels of 48 pixels: %v",
				len(m.Depth),
				len(m.Colors),
				len(m.Labels),
				err,
			)
		}
	})
}
