package depth

import (
	"slices"
	"testing"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// pruned projects a ball that cameras see, and prunes its images.
func pruned(t *testing.T, cameras []Camera, noise int) (whole, kept []Image, before, after pointcloud.Cloud) {
	t.Helper()
	centre, radius := [3]float64{0.02, 0.05, -0.03}, 0.2
	whole, kept = make([]Image, len(cameras)), make([]Image, len(cameras))
	for i := range cameras {
		image := ball(&cameras[i], centre, radius)
		for pixel := range image.Depth {
			if image.Depth[pixel] != 0 && noise > 0 {
				image.Depth[pixel] += uint16((pixel*7919 + pixel/160*104729) % (2*noise + 1))
			}
			image.Colors[pixel] = [3]uint8{uint8(i), uint8(pixel), uint8(pixel >> 8)}
		}
		options := everything
		options.Source = 1 << i
		if err := projector(t, cameras[i], options).ProjectCleaned(&image, &before, &whole[i]); err != nil {
			t.Fatal(err)
		}
		kept[i].CopyFrom(&whole[i])
	}
	after.CopyFrom(&before)
	NewPruner(cameras).Prune(kept, &after)
	return whole, kept, before, after
}

// TestPrune checks that two cameras in front of a ball share the part that both see, and that every place of the union
// remains in one of the images, with and without noise.
func TestPrune(t *testing.T) {
	for _, noise := range []int{0, 4} {
		cameras := twoCameras(t)
		whole, kept, before, after := pruned(t, cameras, noise)
		dropped := before.Len() - after.Len()
		// Both see 120° of the 240° that one sees; each of them keeps a half and some of the other's.
		if share := float64(dropped) / float64(before.Len()); share < 0.12 || share > 0.35 {
			t.Errorf("noise %d: %.2f of %d points were dropped", noise, share, before.Len())
		}
		p := NewPruner(cameras)
		for camera := range cameras {
			for pixel, d := range whole[camera].Depth {
				switch now := kept[camera].Depth[pixel]; {
				case now != 0 && now != d:
					t.Fatalf("noise %d: a depth changes from %d to %d", noise, d, now)
				case d == 0 || now != 0:
					continue
				}
				if other := 1 - camera; p.sees(other, kept[other].Depth, p.place(camera, pixel, d)) < 0 {
					t.Fatalf("noise %d: pixel %d of camera %d was dropped, and camera %d has not kept the place", noise,
						pixel, camera, other)
				}
			}
		}
		// The points are those of the images.
		at := 0
		for camera := range kept {
			for pixel, d := range kept[camera].Depth {
				if d == 0 {
					continue
				}
				want := [3]uint8{uint8(camera), uint8(pixel), uint8(pixel >> 8)}
				if after.Colors[at] != want || after.Sources[at] != 1<<camera {
					t.Fatalf("point %d is %v of %b, expected %v of camera %d", at, after.Colors[at], after.Sources[at],
						want, camera)
				}
				at++
			}
		}
		if at != after.Len() || len(after.Sources) != at || len(after.Colors) != at {
			t.Errorf("%d points, %d sources and %d colours for %d pixels", after.Len(), len(after.Sources),
				len(after.Colors), at)
		}
	}
}

// TestPrunePrefersFrontal checks that nearly no place is kept by the camera that sees it from the side. At the outline
// the normals are not exact.
func TestPrunePrefersFrontal(t *testing.T) {
	cameras := twoCameras(t)
	_, kept, _, _ := pruned(t, cameras, 0)
	p := NewPruner(cameras)
	wrong, all := 0, 0
	for camera := range cameras {
		for pixel, d := range kept[camera].Depth {
			if d == 0 {
				continue
			}
			all++
			place := p.place(camera, pixel, d)
			normal := [3]float64{place[0] - 0.02, place[1] - 0.05, place[2] + 0.03}
			other := 1 - camera
			if p.density(other, place, normal) > 1.2*clearly*p.density(camera, place, normal) &&
				p.sees(other, kept[other].Depth, place) >= 0 {
				wrong++
			}
		}
	}
	if wrong > all/50 {
		t.Errorf("%d of %d places are kept by the camera that sees them less well", wrong, all)
	}
}

// TestPruneSeveral checks that every place that is dropped for one of several cameras remains in the image of another
// one, although pixels of that camera are dropped for further cameras.
func TestPruneSeveral(t *testing.T) {
	for _, angles := range [][]float64{{-40, 0, 40}, {-60, -30, -10, 10, 30, 60}} {
		for _, noise := range []int{0, 4, 16} {
			cameras := camerasAt(t, angles...)
			whole, kept, before, after := pruned(t, cameras, noise)
			if share := 1 - float64(after.Len())/float64(before.Len()); share < 0.15 || share > 0.5 {
				t.Errorf("%v, noise %d: %.2f of %d points were dropped", angles, noise, share, before.Len())
			}
			p := NewPruner(cameras)
			lost := 0
			for camera := range cameras {
				for pixel, d := range whole[camera].Depth {
					if d == 0 || kept[camera].Depth[pixel] != 0 {
						continue
					}
					if !remains(p, camera, p.place(camera, pixel, d), whole, kept) {
						lost++
					}
				}
			}
			if lost > 0 {
				t.Errorf("%v, noise %d: %d of %d dropped pixels are in no other image", angles, noise, lost,
					before.Len()-after.Len())
			}
		}
	}
}

// remains reports whether a camera other than the given one has kept a pixel that sees a place.
func remains(p *Pruner, camera int, place [3]float64, whole, kept []Image) bool {
	for other := range whole {
		if other == camera {
			continue
		}
		if at := p.sees(other, whole[other].Depth, place); at >= 0 && kept[other].Depth[at] != 0 {
			return true
		}
	}
	return false
}

// TestPruneKeepsOthers checks cameras without an image and cameras that see different things.
func TestPruneKeepsOthers(t *testing.T) {
	cameras := twoCameras(t)
	first := ball(&cameras[0], [3]float64{0, 0, 0}, 0.2)
	second := ball(&cameras[1], [3]float64{0, 0.3, -1}, 0.2)
	for _, images := range [][]Image{{first, {}}, {{}, first}, {first, second}} {
		want, points := slices.Clone(images), 0
		var cloud pointcloud.Cloud
		for i := range want {
			want[i].Depth = slices.Clone(images[i].Depth)
			for _, d := range images[i].Depth {
				if d != 0 {
					cloud.Append([3]float32{}, [3]uint8{})
					points++
				}
			}
		}
		NewPruner(cameras).Prune(images, &cloud)
		for i := range images {
			if !slices.Equal(images[i].Depth, want[i].Depth) || cloud.Len() != points {
				t.Errorf("image %d changes, %d points of %d", i, cloud.Len(), points)
			}
		}
	}
}

// BenchmarkPrune prunes the images of two cameras of 640 × 480 pixels that see a ball.
func BenchmarkPrune(b *testing.B) {
	cameras := twoCameras(b)
	images, work := make([]Image, 2), make([]Image, 2)
	var cloud, points pointcloud.Cloud
	for i := range cameras {
		c := &cameras[i]
		c.Width, c.Height, c.FX, c.FY, c.CX, c.CY = 640, 480, 600, 600, 319.5, 239.5
		images[i] = ball(c, [3]float64{}, 0.25)
		for _, d := range images[i].Depth {
			if d != 0 {
				cloud.Append([3]float32{}, [3]uint8{})
			}
		}
	}
	p := NewPruner(cameras)
	b.ReportMetric(float64(cloud.Len()), "points")
	for b.Loop() {
		for i := range images {
			work[i].CopyFrom(&images[i])
		}
		points.CopyFrom(&cloud)
		p.Prune(work, &points)
	}
}
