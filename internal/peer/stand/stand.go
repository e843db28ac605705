// Package stand moves the person that depth cameras see onto the floor of a room. Cameras without a calibration know
// their own coordinates only, in which the floor may be anywhere.
//
// A Source is owned by one goroutine.
package stand

import (
	"context"
	"math"
	"slices"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// The viewer for browsers stands people without a pose by the same numbers (clients/web/src/scene/body.ts).
const (
	// lowShare and topShare are the shares of the heights beyond which points are outliers: background that was not
	// removed.
	lowShare, topShare = 0.005, 0.998
	// headShare is the upper share of the height that has the head. Desks and arms are lower.
	headShare = 0.3
	// standingHeight is the least height of a whole person in metres. Less is a part of a person, as of a seated one.
	standingHeight = 1.3
	// seatedTop is the height of the top of a seated person above the floor in metres.
	seatedTop = 1.32
)

const (
	// cameraHeight is the height in metres that a level camera is taken to have if nobody is in the picture.
	cameraHeight = 1.2
	// patience is the number of frames to wait for a person: a second at 30 frames per second.
	patience = 30
	// samples is the largest number of points from which a person is measured.
	samples = 3000
	// slack extends boxes in metres, since positions of moved points are rounded to float32.
	slack = 1e-5
)

// level is the rotation of a camera that is not turned.
var level = [3][3]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}

// Source moves the points and the cameras of another source: the floor is at height 0, and the person of the first
// frame is above the origin, with the front to +z. The motion does not change afterwards.
type Source struct {
	capture.Source
	info capture.Info
	pose depth.Pose
}

// NewSource reads frames of a source until a person is in the picture, and returns the source moved onto the floor. If
// nobody is in the first 30 frames, the camera is taken to be level and 1.2 m above the floor. Errors are those of
// Read. Close closes the other source.
func NewSource(ctx context.Context, source capture.Source) (*Source, error) {
	s := &Source{Source: source, info: source.Info(),
		pose: depth.Pose{Rotation: level, Translation: [3]float64{0, cameraHeight, 0}}}
	var frame capture.Frame
	for range patience {
		if err := source.Read(ctx, &frame); err != nil {
			return nil, err
		}
		if frame.Cloud.Len() > 0 {
			s.pose = Of(frame.Cloud.Positions)
			break
		}
	}
	s.info.Box = moved(s.pose, s.info.Box)
	s.info.Cameras = slices.Clone(s.info.Cameras)
	for i := range s.info.Cameras {
		s.info.Cameras[i].Pose = s.pose.After(s.info.Cameras[i].Pose)
	}
	return s, nil
}

// Applies reports whether a source has depth cameras, all of which are where a camera without a calibration is: at the
// origin.
func Applies(info capture.Info) bool {
	return len(info.Cameras) > 0 && !slices.ContainsFunc(info.Cameras, func(c depth.Camera) bool {
		return c.Pose != depth.Pose{} && c.Pose != depth.Pose{Rotation: level}
	})
}

// Info implements capture.Source.
func (s *Source) Info() capture.Info { return s.info }

// Read implements capture.Source.
func (s *Source) Read(ctx context.Context, frame *capture.Frame) error {
	if err := s.Source.Read(ctx, frame); err != nil {
		return err
	}
	r, t := s.pose.Rotation, s.pose.Translation
	for i, p := range frame.Cloud.Positions {
		x, y, z := float64(p[0]), float64(p[1]), float64(p[2])
		for axis := range 3 {
			frame.Cloud.Positions[i][axis] = float32(r[axis][0]*x + r[axis][1]*y + r[axis][2]*z + t[axis])
		}
	}
	return nil
}

// Of returns the motion from the coordinates of a camera to those of a room for a person with these points, at least
// one. The lowest points of a whole person are on the floor. A part of a person has its top at the height of a seated
// person. The camera is in front of the person.
func Of(points [][3]float32) depth.Pose {
	heights := along(points, 1, float32(math.Inf(-1)))
	low, top := quantile(heights, lowShare), quantile(heights, topShare)
	head := float32(top - headShare*(top-low))
	x, z := quantile(along(points, 0, head), 0.5), quantile(along(points, 2, head), 0.5)
	lift := -low
	if top-low < standingHeight {
		lift = seatedTop - top
	}
	away := math.Hypot(x, z)
	if away == 0 {
		return depth.Pose{Rotation: level, Translation: [3]float64{0, lift, 0}}
	}
	// The direction to the camera becomes +z.
	sin, cos := -x/away, -z/away
	turn := depth.Pose{Rotation: [3][3]float64{{cos, 0, -sin}, {0, 1, 0}, {sin, 0, cos}}}
	middle := turn.Apply([3]float64{x, 0, z})
	turn.Translation = [3]float64{-middle[0], lift, -middle[2]}
	return turn
}

// along returns the sorted coordinates on one axis of an even sample of points that are at least as high as lowest.
func along(points [][3]float32, axis int, lowest float32) []float32 {
	stride := max(1, len(points)/samples)
	var values []float32
	for i := 0; i < len(points); i += stride {
		if points[i][1] >= lowest {
			values = append(values, points[i][axis])
		}
	}
	slices.Sort(values)
	return values
}

// quantile returns a quantile of sorted values, of which there is at least one.
func quantile(values []float32, share float64) float64 {
	return float64(values[min(len(values)-1, int(share*float64(len(values))))])
}

// moved returns a box that contains the moved points of another box.
func moved(pose depth.Pose, box volumetric.BoundingBox) volumetric.BoundingBox {
	var low, high [3]float64
	for corner := range 8 {
		var p [3]float64
		for axis := range 3 {
			p[axis] = float64(box.Min[axis])
			if corner>>axis&1 == 1 {
				p[axis] = float64(box.Max[axis])
			}
		}
		p = pose.Apply(p)
		for axis := range 3 {
			if corner == 0 {
				low[axis], high[axis] = p[axis], p[axis]
			}
			low[axis], high[axis] = min(low[axis], p[axis]), max(high[axis], p[axis])
		}
	}
	var into volumetric.BoundingBox
	for axis := range 3 {
		into.Min[axis], into.Max[axis] = float32(low[axis]-slack), float32(high[axis]+slack)
	}
	return into
}
