package client

import (
	"context"
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Viewpoint is the position and the field of view of the program's camera, in the room's coordinates: right-handed, in
// metres, x right, y up.
type Viewpoint struct {
	// At is the time of the viewpoint, by this host's clock. The zero time is the present time.
	At       time.Time
	Position [3]float64
	// Orientation is a unit quaternion x, y, z, w. The zero value counts as 0, 0, 0, 1, which looks along -z with +y
	// up.
	Orientation [4]float64
	// FOV is the vertical field of view in radians, Aspect its width divided by its height. 0 counts as 60 degrees, and
	// as 1.
	FOV, Aspect float64
}

// Pose is the position of an object in the room. A point in the coordinates of the publication is scaled, rotated and
// translated, in this order.
type Pose struct {
	Position [3]float64
	// Orientation is a unit quaternion x, y, z, w. The zero value counts as 0, 0, 0, 1.
	Orientation [4]float64
	// Scale is the size of the object in the room relative to its published size. 0 counts as 1.
	Scale float64
	// Boxes are the present bounding boxes of the tiles in the publication's coordinates, one per tile. Without boxes
	// the last ones remain valid.
	Boxes []volumetric.BoundingBox
	// Priority is the weight of the object beside visible objects of the same size. 0 counts as 1.
	Priority float64
}

const defaultFOV = math.Pi / 3

// SetViewpoint sends the program's viewpoint to the server, which sends visible objects in the best quality. The
// program may call SetViewpoint for every rendered frame: the newest viewpoint is sent at most 60 times per second. The
// last viewpoint remains valid. If the server refuses a viewpoint, the program receives no error.
func (s *Session) SetViewpoint(v Viewpoint) {
	if v.At.IsZero() {
		v.At = time.Now()
	}
	if v.FOV == 0 {
		v.FOV = defaultFOV
	}
	if v.Aspect == 0 {
		v.Aspect = 1
	}
	s.updates.SetViewpoint(&signal.Viewpoint{
		At:          s.ServerTime(v.At).UnixMicro(),
		Position:    v.Position,
		Orientation: rotation(v.Orientation),
		FOV:         v.FOV * 180 / math.Pi,
		Aspect:      v.Aspect,
	})
}

// SetPose sends the pose of the object to the other participants. Like viewpoints, the newest pose is sent at most 60
// times per second.
func (p *Publisher) SetPose(pose Pose) {
	p.session.updates.SetPose(&signal.Pose{
		Publication: p.description.Name,
		Position:    pose.Position,
		Orientation: rotation(pose.Orientation),
		Scale:       pose.Scale,
		Boxes:       pose.Boxes,
		Priority:    pose.Priority,
	})
}

// SetLimits bounds the rate that the server sends to this client, in bit/s. most is the highest rate. least is a rate
// that the link is known to carry, and the minimum of the server's estimate. 0 is no limit. SetLimits returns when the
// server has accepted the limits.
func (s *Session) SetLimits(ctx context.Context, most, least volumetric.Bitrate) error {
	limits := s.config.limits(most, least)
	if _, err := s.request(ctx, &signal.SetLimits{BitrateLimits: limits}); err != nil {
		return err
	}
	s.mu.Lock()
	s.limits = limits
	s.mu.Unlock()
	return nil
}

func rotation(q [4]float64) signal.Rotation {
	if q == ([4]float64{}) {
		return signal.Rotation{0, 0, 0, 1}
	}
	return q
}

// posed converts a pose from the server to an event.
func posed(m *signal.Pose) PoseChanged {
	scale, priority := m.Scale, m.Priority
	if scale == 0 {
		scale = 1
	}
	if priority == 0 {
		priority = 1
	}
	return PoseChanged{
		Publication: volumetric.PublicationRef{Participant: m.Participant, Publication: m.Publication},
		Pose: Pose{
			Position: m.Position, Orientation: m.Orientation, Scale: scale, Boxes: m.Boxes, Priority: priority,
		},
	}
}
