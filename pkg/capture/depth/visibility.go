package depth

import "github.com/volsfu/volsfu/pkg/pointcloud"

// Visibility finds which of several cameras saw a point: the one that it comes from, and every other that has a pixel at about its place. It never
// changes, so any number of goroutines may use it.
type Visibility struct {
	cameras []Camera
	// into are the motions from the world into each camera's coordinates.
	into []Pose
}

// sameSurface is how much nearer or farther another camera may see a point, as a part of its depth: what calibrations and two cameras' noise leave.
const sameSurface = 0.02

// NewVisibility takes cameras in the order of their bits, at most MaxCameras.
func NewVisibility(cameras []Camera) *Visibility {
	v := &Visibility{cameras: cameras}
	for _, c := range cameras {
		v.into = append(v.into, c.Pose.Inverse())
	}
	return v
}

// Mark adds the bits of the cameras that saw them to the points of a cloud that has Sources, given the cameras' images, from which it was made.
func (v *Visibility) Mark(images []Image, cloud *pointcloud.Cloud) {
	for i, position := range cloud.Positions {
		world := [3]float64{float64(position[0]), float64(position[1]), float64(position[2])}
		seen := cloud.Sources[i]
		for n := range v.cameras {
			if seen&(1<<n) == 0 && v.sees(n, images[n].Depth, world) {
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
