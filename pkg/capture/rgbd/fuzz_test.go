package rgbd

import (
	"bytes"
	"errors"
	"image"
	"testing"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// FuzzLoadPair gives any bytes for the two images of a small camera: what comes out is an error or a cloud of at most one point per pixel,
// within the depth range and the camera's view.
func FuzzLoadPair(f *testing.F) {
	depth := encode(f, depthImage(8, 6, func(x, y int) uint16 { return uint16(700 + 100*x + y) }))
	colors := encode(f, colorImage(8, 6))
	f.Add(depth, colors)
	f.Add(depth[:len(depth)-12], colors)
	f.Add(depth, colors[:50])
	f.Add(colors, depth)
	f.Add(encode(f, image.NewGray(image.Rect(0, 0, 8, 6))), encode(f, image.NewNRGBA64(image.Rect(0, 0, 8, 6))))
	f.Add(encode(f, depthImage(9, 6, func(int, int) uint16 { return 1 })), []byte{})
	in, err := ParseIntrinsics([]byte(plainIntrinsics))
	if err != nil {
		f.Fatal(err)
	}
	in.Near, in.Far = 0.7, 1.3
	filter, err := newFilter(in, Config{EdgeRatio: 0.3, EdgeNeighbors: 2, MinBlobPixels: 3})
	if err != nil {
		f.Fatal(err)
	}
	projection := newProjection(in)
	f.Fuzz(func(t *testing.T, depth, color []byte) {
		w := newWorkspace(in)
		for _, err := range []error{w.readDepth(bytes.NewReader(depth), in), w.readColor(bytes.NewReader(color), in)} {
			if err != nil && !errors.Is(err, ErrImage) {
				t.Errorf("error without kind: %v", err)
			}
		}
		var cloud pointcloud.Cloud
		filter.apply(w)
		projection.project(w, &cloud)
		if cloud.Len() > in.Width*in.Height || len(cloud.Colors) != cloud.Len() {
			t.Fatalf("%d points and %d colours from %d pixels", cloud.Len(), len(cloud.Colors), in.Width*in.Height)
		}
		for _, p := range cloud.Positions {
			if d := -p[2]; !(d >= 0.6999 && d <= 1.3001) || !(p[0] >= -0.9*d && p[0] <= 0.9*d) {
				t.Errorf("point %v is out of view", p)
			}
		}
	})
}
