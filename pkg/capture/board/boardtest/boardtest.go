// Package boardtest renders pictures of calibration boards for tests.
package boardtest

import (
	"math"
	"math/rand/v2"

	"github.com/volsfu/volsfu/pkg/capture/board"
	"github.com/volsfu/volsfu/pkg/capture/depth"
)

// Shot is a picture of a board.
type Shot struct {
	Board  board.Board
	Camera depth.Camera
	// Place is the motion from the board's coordinates to the camera's, both with y down and z forward.
	Place depth.Pose
	// Blur is the standard deviation in pixels of the blur, Noise that of the brightness in grey levels.
	Blur, Noise float64
	// Hidden reports whether something stands in front of a pixel; nil means that nothing does.
	Hidden func(u, v float64) bool
	Seed   uint64
}

// samples is the number of samples of a pixel. No two have the same place along an axis, and each pixel has other
// places: an edge along an axis is as exact as any other.
const samples = 8

// golden is the golden ratio, whose multiples spread evenly modulo 1.
const golden = 1.618033988749895

// Depth returns the distance along the axis of the board's point that a pixel sees; false if it sees none.
func (s *Shot) Depth(u, v float64) (z float64, ok bool) {
	x, y, ok := s.Camera.Deproject(u, v)
	if !ok {
		return 0, false
	}
	z, onX, onY := s.meet(x, y)
	if _, inside := s.Board.White(onX, onY); !inside {
		return 0, false
	}
	return z, z > 0
}

// meet returns the distance at which the ray through a point of the image plane meets the board's plane, and the place
// on the board.
func (s *Shot) meet(x, y float64) (z, onX, onY float64) {
	back := s.Place.Inverse()
	ray := depth.Pose{Rotation: back.Rotation}.Apply([3]float64{x, y, 1})
	from := back.Translation
	z = -from[2] / ray[2]
	return z, from[0] + z*ray[0], from[1] + z*ray[1]
}

// Picture renders the picture: paper of 25 and 225 grey levels under light that falls off to one side, in front of a
// grey room with stripes.
func (s *Shot) Picture() *board.Gray {
	g := board.NewGray(s.Camera.Width, s.Camera.Height)
	// Rays through the corners of the pixels. Within a pixel they are interpolated.
	columns := g.Width + 1
	rays := make([][2]float64, columns*(g.Height+1))
	for i := range rays {
		x, y, ok := s.Camera.Deproject(float64(i%columns)-0.5, float64(i/columns)-0.5)
		if !ok {
			x = math.NaN()
		}
		rays[i] = [2]float64{x, y}
	}
	random := rand.New(rand.NewPCG(s.Seed, 1))
	for v := range g.Height {
		for u := range g.Width {
			shiftU, shiftV := random.Float64(), random.Float64()
			corners := rays[v*columns+u:]
			sum := 0.0
			for i := range samples {
				du, dv := math.Mod(float64(i)/samples+shiftU, 1), math.Mod(float64(i)*golden+shiftV, 1)
				var ray [2]float64
				for axis := range ray {
					top := corners[0][axis]*(1-du) + corners[1][axis]*du
					bottom := corners[columns][axis]*(1-du) + corners[columns+1][axis]*du
					ray[axis] = top*(1-dv) + bottom*dv
				}
				sum += s.brightness(float64(u)+du-0.5, float64(v)+dv-0.5, ray)
			}
			g.Pixels[v*g.Width+u] = float32(sum / samples)
		}
	}
	if s.Blur > 0 {
		g = blurred(g, s.Blur)
	}
	for i, value := range g.Pixels {
		value += float32(s.Noise * random.NormFloat64())
		g.Pixels[i] = float32(math.Round(float64(min(max(value, 0), 255))))
	}
	return g
}

// brightness returns the brightness at a place of the picture, given its ray.
func (s *Shot) brightness(u, v float64, ray [2]float64) float64 {
	light := 1 - 0.4*u/float64(s.Camera.Width)
	if s.Hidden != nil && s.Hidden(u, v) {
		return 90 * light
	}
	if z, x, y := s.meet(ray[0], ray[1]); z > 0 {
		if white, inside := s.Board.White(x, y); inside && white {
			return 225 * light
		} else if inside {
			return 25 * light
		}
	}
	if int(u/37)%2 == 0 {
		return 140 * light
	}
	return 70 * light
}

// blurred applies a Gaussian blur, directly by its definition.
func blurred(g *board.Gray, sigma float64) *board.Gray {
	radius := int(math.Ceil(3 * sigma))
	pass := func(from *board.Gray, dx, dy int) *board.Gray {
		to := board.NewGray(from.Width, from.Height)
		for v := range from.Height {
			for u := range from.Width {
				sum, weights := 0.0, 0.0
				for i := -radius; i <= radius; i++ {
					x, y := u+i*dx, v+i*dy
					if x >= 0 && y >= 0 && x < from.Width && y < from.Height {
						w := math.Exp(-float64(i*i) / (2 * sigma * sigma))
						sum += w * float64(from.Pixels[y*from.Width+x])
						weights += w
					}
				}
				to.Pixels[v*to.Width+u] = float32(sum / weights)
			}
		}
		return to
	}
	return pass(pass(g, 1, 0), 0, 1)
}

// Turned returns the motion of a board at a place in front of a camera, turned by angles in radians: around the
// vertical axis, around the horizontal axis, and in its plane.
func Turned(place [3]float64, yaw, pitch, roll float64) depth.Pose {
	return depth.Pose{Translation: place}.After(about(1, yaw)).After(about(0, pitch)).After(about(2, roll))
}

// about returns a rotation around an axis.
func about(axis int, angle float64) depth.Pose {
	q := [4]float64{3: math.Cos(angle / 2)}
	q[axis] = math.Sin(angle / 2)
	rotation, _ := depth.Rotation(q)
	return depth.Pose{Rotation: rotation}
}
