package depth

import "github.com/volsfu/volsfu/pkg/pointcloud"

// Visibility finds the cameras that saw a point: the camera from which the point comes, and every other camera with a
// pixel near the point's position. A Visibility is immutable and safe for concurrent use.
type Visibility struct {
	cameras []Camera
	// into contains the motion from the world to each camera's coordinates.
	into []Pose
}

// sameSurface is the tolerated depth difference of another camera's pixel, relative to the depth:
// the errors of calibration and of two cameras' noise.
const sameSurface = 0.02

// NewVisibility returns the visibility for cameras in the order of their bits, at most MaxCameras.
func NewVisibility(cameras []Camera) *Visibility {
	v := &Visibility{cameras: cameras}
	for _, c := range cameras {
		v.into = append(v.into, c.Pose.Inverse())
	}
	return v
}

// Mark sets the bits of all cameras that saw each point of a cloud with Sources. images contains
// the cameras' images from which the cloud was made; an image without Depth saw nothing.
func (v *Visibility) Mark(images []Image, cloud *pointcloud.Cloud) {
	for i, position := range cloud.Positions {
		world := [3]float64{float64(position[0]), float64(position[1]), float64(position[2])}
		seen := cloud.Sources[i]
		for n := range v.cameras {
			if seen&(1<<n) == 0 && len(images[n].Depth) > 0 && v.sees(n, images[n].Depth, world) {
				cloud.Sources[i] |= 1 << n
			}
		}
	}
}

func (v *Visibility) sees(n int, depths []uint16, world [3]float64) bool {
	c := &v.cameras[n]
	at := v.into[n].Apply(world)
	far := -at[2]
	if far <= 0 {
		return false
	}
	x, y, ok := c.Project(at[0]/far, -at[1]/far)
	if !ok || !(x > -0.5 && y > -0.5 && x < float64(c.Width)-0.5 && y < float64(c.Height)-0.5) {
		return false
	}
	seen := float64(depths[int(y+0.5)*c.Width+int(x+0.5)]) * c.Unit
	return seen > far*(1-sameSurface) && seen < far*(1+sameSurface)
}
