package realsense

import (
	"path/filepath"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/realsense/rstest"
)

// BenchmarkFilm reads a recording of a camera of the usual size: decompression by the library,
// synchronisation, alignment, and copying.
func BenchmarkFilm(b *testing.B) {
	library := rstest.Library(b)
	scene := rstest.Scene{
		Camera: depth.Camera{Name: "1", Width: 848, Height: 480, FX: 610, FY: 610, CX: 423.5, CY: 239.5, Unit: 0.001},
		FPS:    30,
	}
	image := depth.Image{Depth: make([]uint16, 848*480), Colors: make([][3]uint8, 848*480)}
	for i := range image.Depth {
		image.Depth[i] = uint16(1500 + i%848/4 + i%7)
		image.Colors[i] = [3]uint8{uint8(i), uint8(i >> 8), uint8(i % 7)}
	}
	for range 40 {
		scene.Images = append(scene.Images, image)
	}
	path := filepath.Join(b.TempDir(), "film.db3")
	scene.Record(b, library, path, 0)
	b.ReportAllocs()
	f, err := openFilm(library, path, Filters{})
	if err != nil {
		b.Fatal(err)
	}
	var p picture
	for b.Loop() {
		got, err := f.next(&p)
		if err != nil {
			b.Fatal(err)
		}
		if !got {
			b.StopTimer()
			f.close()
			if f, err = openFilm(library, path, Filters{}); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	}
	for got := true; got && err == nil; got, err = f.next(&p) {
	}
	f.close()
}
