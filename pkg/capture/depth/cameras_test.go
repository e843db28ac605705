package depth

import (
	"math"
	"testing"

	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/test/allocations"
)

// twoCameras view the same object from directions 60° apart, 1 m from the origin.
func twoCameras(t testing.TB) []Camera {
	t.Helper()
	return camerasAt(t, -30, 30)
}

// camerasAt returns cameras at angles around the origin in degrees, 1 m away.
func camerasAt(t testing.TB, angles ...float64) []Camera {
	t.Helper()
	var cameras []Camera
	for _, angle := range angles {
		half := angle / 2 * math.Pi / 180
		turn, ok := Rotation([4]float64{0, math.Sin(half), 0, math.Cos(half)})
		if !ok {
			t.Fatal("no rotation")
		}
		pose := Pose{Rotation: turn}
		pose.Translation = pose.Apply([3]float64{0, 0, 1})
		cameras = append(
			cameras,
			Camera{
				Width:      160,
				Height:     120,
				FX:         150,
				FY:         150,
				CX:         79.5,
				CY:         59.5,
				Unit:       0.0005,
				Distortion: lenses["kinect colour"].lens,
				Pose:       pose,
			},
		)
	}
	return cameras
}

// ball renders the image of a ball at a position, without background.
func ball(c *Camera, centre [3]float64, radius float64) Image {
	m := Image{Depth: make([]uint16, c.Width*c.Height), Colors: make([][3]uint8, c.Width*c.Height)}
	turn := Pose{Rotation: c.Pose.Rotation}
	for i := range m.Depth {
		x, y, ok := c.Deproject(float64(i%c.Width), float64(i/c.Width))
		if !ok {
			continue
		}
		ray := turn.Apply([3]float64{x, -y, -1})
		var away [3]float64
		for axis := range 3 {
			away[axis] = c.Pose.Translation[axis] - centre[axis]
		}
		a, b, q := dot(ray, ray), dot(ray, away), dot(away, away)-radius*radius
		if under := b*b - a*q; under > 0 {
			m.Depth[i] = uint16((-b-math.Sqrt(under))/a/c.Unit + 0.5)
		}
	}
	return m
}

// TestMarkFindsOtherCameras checks the visibility of a ball: each camera sees a half, and both see
// the intersection.
func TestMarkFindsOtherCameras(t *testing.T) {
	cameras := twoCameras(t)
	centre, radius := [3]float64{0.02, 0.05, -0.03}, 0.2
	var cloud pointcloud.Cloud
	var images []Image
	for i := range cameras {
		images = append(images, ball(&cameras[i], centre, radius))
		options := everything
		options.Source = 1 << i
		if err := projector(t, cameras[i], options).Project(&images[i], &cloud); err != nil {
			t.Fatal(err)
		}
	}
	NewVisibility(cameras).Mark(images, &cloud)
	var counts [4]int
	wrong := 0
	for i, p := range cloud.Positions {
		// Both lens models are exact: a camera sees a point of the ball if it is on the camera's
		// side.
		var normal [3]float64
		for axis := range 3 {
			normal[axis] = float64(p[axis]) - centre[axis]
		}
		if off := math.Abs(math.Sqrt(dot(normal, normal)) - radius); off > 0.002 {
			t.Fatalf("a point %v is %g m off the ball", p, off)
		}
		seen := uint16(0)
		sure := true
		for n := range cameras {
			var towards [3]float64
			for axis := range 3 {
				towards[axis] = cameras[n].Pose.Translation[axis] - float64(p[axis])
			}
			facing := dot(normal, towards) / radius / math.Sqrt(dot(towards, towards))
			if facing > 0 {
				seen |= 1 << n
			}
			sure = sure && math.Abs(facing) > 0.15 // at the rim, one pixel can decide
		}
		counts[cloud.Sources[i]]++
		if sure && cloud.Sources[i] != seen {
			wrong++
		}
	}
	if counts[0] != 0 || counts[1] < 500 || counts[2] < 500 || counts[3] < 1000 || wrong > cloud.Len()/100 {
		t.Errorf(
			"%v points of no, the first, the second and both cameras, %d of %d are wrong",
			counts,
			wrong,
			cloud.Len(),
		)
	}
}

// rows encodes the position of every pixel.
type rows struct{}

func (rows) RGB(x, y int) [3]uint8 { return [3]uint8{uint8(x), uint8(y), 7} }

// TestAlign aligns a ball in front of a wall with a colour camera 5 cm to the side. Every pixel has
// the colour of its point in the colour image. Points behind the ball, or beyond the picture, have
// none.
func TestAlign(t *testing.T) {
	c := Camera{
		Width:      160,
		Height:     120,
		FX:         150,
		FY:         150,
		CX:         79.5,
		CY:         59.5,
		Unit:       0.001,
		Distortion: lenses["kinect depth"].lens,
	}
	color := Camera{
		Width:      250,
		Height:     200,
		FX:         300,
		FY:         300,
		CX:         124,
		CY:         101,
		Unit:       0.001,
		Distortion: lenses["kinect colour"].lens,
	}
	turn, _ := Rotation([4]float64{0.02, 0.03, -0.01, 1})
	toColor := Pose{Rotation: turn, Translation: [3]float64{-0.05, 0.01, 0.004}}
	a, err := NewAlignment(c, color, toColor)
	if err != nil {
		t.Fatal(err)
	}
	m := ball(&c, [3]float64{0, 0, -0.6}, 0.1)
	for i, d := range m.Depth {
		if d == 0 {
			m.Depth[i] = 1200
		}
	}
	raw := append([]uint16(nil), m.Depth...)
	var r Registration
	a.Align(&m, rows{}, &r)
	var kept, lost, rim int
	for i, d := range m.Depth {
		x, y, _ := c.Deproject(float64(i%c.Width), float64(i/c.Width))
		far := float64(raw[i]) * c.Unit
		at := toColor.Apply([3]float64{x * far, -y * far, -far})
		u, v, ok := color.Project(at[0]/-at[2], -at[1]/-at[2])
		switch {
		case d != 0:
			kept++
			if !ok || math.Abs(u-float64(m.Colors[i][0])) > 0.51 || math.Abs(v-float64(m.Colors[i][1])) > 0.51 {
				t.Fatalf(
					"pixel %d, %d has the colour of %v, expected that of %g, %g",
					i%c.Width,
					i/c.Width,
					m.Colors[i],
					u,
					v,
				)
			}
		case ok && u > 1 && v > 1 && u < 248 && v < 198:
			lost++ // in the picture, but hidden
			if raw[i] != 1200 {
				rim++ // at the edge of the ball's surface
			}
		}
	}
	// The ball's shadow on the wall is 5 cm · (1.2 m / 0.55 m - 1) wide, about 7 pixels, and as
	// high as the ball, about 54.
	if kept < 10_000 || lost < 150 || lost > 700 || rim > 40 {
		t.Errorf("%d pixels kept, %d hidden, %d of them the ball's", kept, lost, rim)
	}
	if n := allocations.PerCall(5, func() { a.Align(&m, rows{}, &r) }); n > 0 {
		t.Errorf("%g allocations per image", n)
	}
}
