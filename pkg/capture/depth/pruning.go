package depth

import (
	"math"
	"slices"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// Pruner drops the pixels of a camera whose surface another camera sees better: more frontally, from nearer or with
// more pixels. The measure is the number of pixels on an area of the surface, which is proportional to the cosine of
// the angle between the normal and the ray, and to 1/depth². Each place stays in the image of one camera at least: a
// pixel for which another one was dropped is kept. Without this rule a place could be dropped for a second camera, and
// the second camera's pixel for a third camera, whose surface is near the second's, but not near the first's.
//
// A Pruner is a function of the images of one frame. It keeps its memory and belongs to one goroutine.
type Pruner struct {
	cameras []Camera
	// into contains the motion from the world to each camera's coordinates.
	into []Pose
	// directions contains, for each pixel of each camera, the ray per metre of depth in the world; zero if there is
	// none.
	directions [][][3]float32
	joints     []joint
	kept       []bool
	// needed contains the pixels of each camera for which pixels of others were dropped.
	needed [][]bool
}

const (
	// clearly is the ratio of the pixel densities of two cameras above which one sees a surface better. It leaves a
	// band in which both pixels are kept, so that noise in the normals makes no holes.
	clearly = 1.25
	// prunedDistance is the largest distance between two cameras' points of one surface along the other camera's ray,
	// relative to the depth: half of sameSurface, since a wrongly dropped pixel is a hole, and a pixel too many costs a
	// few bits.
	prunedDistance = sameSurface / 2
	// normalReach is the distance in pixels of the neighbours whose differences give the normal. With noise of 1 mm,
	// and pixels 3 mm apart, the error of a normal is about 3°.
	normalReach = 4
)

// NewPruner returns a pruner for cameras with calibrated poses.
func NewPruner(cameras []Camera) *Pruner {
	p := &Pruner{cameras: cameras, joints: newJoints(sameSurface)}
	for i := range cameras {
		c := &cameras[i]
		p.into = append(p.into, c.Pose.Inverse())
		turn := Pose{Rotation: c.Pose.Rotation}
		directions := make([][3]float32, c.Width*c.Height)
		for pixel := range directions {
			x, y, ok := c.Deproject(float64(pixel%c.Width), float64(pixel/c.Width))
			if !ok {
				continue
			}
			ray := turn.Apply([3]float64{x, -y, -1})
			directions[pixel] = [3]float32{float32(ray[0]), float32(ray[1]), float32(ray[2])}
		}
		p.directions = append(p.directions, directions)
	}
	return p
}

// Clone returns a pruner for another goroutine.
func (p *Pruner) Clone() *Pruner {
	return &Pruner{cameras: p.cameras, into: p.into, directions: p.directions, joints: p.joints}
}

// Prune sets the depths of dropped pixels to 0, and removes their points from a cloud whose points are those of the
// images' pixels with a depth, camera by camera and row by row. An image without Depth has no pixels.
func (p *Pruner) Prune(images []Image, cloud *pointcloud.Cloud) {
	point, to := 0, 0
	p.needed = slices.Grow(p.needed[:0], len(images))[:len(images)]
	for camera := range images {
		p.needed[camera] = resize(p.needed[camera], len(images[camera].Depth))
		clear(p.needed[camera])
	}
	for camera := range images {
		m := &images[camera]
		if len(m.Depth) == 0 {
			continue
		}
		p.judge(camera, images)
		for pixel, d := range m.Depth {
			if d == 0 {
				continue
			}
			if p.kept[pixel] {
				cloud.Swap(to, point)
				to++
			} else {
				m.Depth[pixel] = 0
			}
			point++
		}
	}
	cloud.Truncate(to)
}

// judge sets which pixels of a camera are kept.
func (p *Pruner) judge(camera int, images []Image) {
	depths := images[camera].Depth
	p.kept = resize(p.kept, len(depths))
	for pixel, d := range depths {
		p.kept[pixel] = d != 0
		if d == 0 || p.needed[camera][pixel] {
			continue
		}
		normal, ok := p.normal(camera, depths, pixel)
		if !ok {
			continue
		}
		if other, better := p.best(camera, images, p.place(camera, pixel, d), normal); better >= 0 {
			p.kept[pixel] = false
			p.needed[other][better] = true
		}
	}
}

// best returns the camera that sees a place of a camera best, and its pixel, -1 if no other camera sees the place
// clearly better. The best camera's pixels are the least likely to be dropped for those of a further camera.
func (p *Pruner) best(camera int, images []Image, place, normal [3]float64) (best, pixel int) {
	best, pixel = camera, -1
	most := clearly * p.density(camera, place, normal)
	for other := range images {
		if other == camera || len(images[other].Depth) == 0 {
			continue
		}
		density := p.density(other, place, normal)
		if !(density > most) {
			continue
		}
		if at := p.sees(other, images[other].Depth, place); at >= 0 {
			best, pixel, most = other, at, density
		}
	}
	return best, pixel
}

// place returns the point of a pixel in the world.
func (p *Pruner) place(camera, pixel int, d uint16) [3]float64 {
	c := &p.cameras[camera]
	ray, metres := &p.directions[camera][pixel], float64(d)*c.Unit
	place := c.Pose.Translation
	for axis := range place {
		place[axis] += float64(ray[axis]) * metres
	}
	return place
}

// normal returns the normal of a pixel's surface, towards the camera and of any length, from its neighbours to the left
// and right, above and below. ok is false if the surface is too small.
func (p *Pruner) normal(camera int, depths []uint16, pixel int) (normal [3]float64, ok bool) {
	across, ok := p.tangent(camera, depths, pixel, 1, pixel%p.cameras[camera].Width, p.cameras[camera].Width)
	if !ok {
		return normal, false
	}
	width := p.cameras[camera].Width
	down, ok := p.tangent(camera, depths, pixel, width, pixel/width, p.cameras[camera].Height)
	if !ok {
		return normal, false
	}
	return [3]float64{
		down[1]*across[2] - down[2]*across[1],
		down[2]*across[0] - down[0]*across[2],
		down[0]*across[1] - down[1]*across[0],
	}, true
}

// tangent returns the difference of the farthest neighbours of a pixel on its surface, in one direction of the image.
func (p *Pruner) tangent(camera int, depths []uint16, pixel, stride, at, size int) (tangent [3]float64, ok bool) {
	j := p.joints[depths[pixel]]
	before, after := pixel, pixel
	for n := 1; n <= normalReach && at-n >= 0 && j.has(depths[pixel-n*stride]); n++ {
		before = pixel - n*stride
	}
	for n := 1; n <= normalReach && at+n < size && j.has(depths[pixel+n*stride]); n++ {
		after = pixel + n*stride
	}
	if before == after {
		return tangent, false
	}
	a, b := p.place(camera, before, depths[before]), p.place(camera, after, depths[after])
	return [3]float64{b[0] - a[0], b[1] - a[1], b[2] - a[2]}, true
}

// density returns the number of a camera's pixels on an area of a surface, not in any unit; it is not positive if the
// camera is behind the surface.
func (p *Pruner) density(camera int, place, normal [3]float64) float64 {
	c := &p.cameras[camera]
	toward := c.Pose.Translation
	for axis := range toward {
		toward[axis] -= place[axis]
	}
	// The cosine is dot/(length of both); the length of the normal is common to all cameras.
	square := dot(toward, toward)
	return c.FX * c.FY * dot(toward, normal) / (square * math.Sqrt(square))
}

// sees returns a camera's pixel at a place if the pixel, and the four pixels around it, see the place's surface, and -1
// otherwise.
func (p *Pruner) sees(camera int, depths []uint16, place [3]float64) (pixel int) {
	c := &p.cameras[camera]
	at := p.into[camera].Apply(place)
	far := -at[2]
	if !(far > 0) {
		return -1
	}
	u, v, ok := c.Project(at[0]/far, -at[1]/far)
	x, y := math.Round(u), math.Round(v)
	if !ok || !(x >= 1 && y >= 1 && x < float64(c.Width-1) && y < float64(c.Height-1)) {
		return -1
	}
	pixel = int(y)*c.Width + int(x)
	seen := float64(depths[pixel]) * c.Unit
	if !(math.Abs(seen-far) <= prunedDistance*far) {
		return -1
	}
	j := p.joints[depths[pixel]]
	if !j.has(depths[pixel-1]) || !j.has(depths[pixel+1]) || !j.has(depths[pixel-c.Width]) ||
		!j.has(depths[pixel+c.Width]) {
		return -1
	}
	return pixel
}
