package client

import (
	"context"
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Viewpoint is where the program looks from and what it sees, in the room's coordinates: right-handed, in metres, x
// right, y up.
type Viewpoint struct {
	// At is when the eye was there, by this host's clock; the zero time is now.
	At       time.Time
	Position [3]float64
	// Orientation is a unit quaternion x, y, z, w. The zero one counts as 0, 0, 0, 1, which looks along -z with +y up.
	Orientation [4]float64
	// FOV is the vertical angle of what is seen, in radians, and Aspect its width over its height. 0 counts as 60
	// degrees, and as 1.
	FOV, Aspect float64
}

// Pose is where an object stands in the room: a point of the publication's boxes is scaled, turned and moved, in this
// order.
type Pose struct {
	Position [3]float64
	// Orientation is a unit quaternion x, y, z, w; the zero one counts as 0, 0, 0, 1.
	Orientation [4]float64
	// Scale is how much larger than published the object stands there; 0 counts as 1.
	Scale float64
	// Boxes are the tiles' boxes as they are now, in the publication's own coordinates, one for each; none leaves the
	// last ones.
	Boxes []volumetric.BoundingBox
	// Priority is what the object is worth beside others of the same size in sight; 0 counts as 1.
	Priority float64
}

const defaultFOV = math.Pi / 3

// SetViewpoint tells the server where the program looks from, so that what it sees is sent best. It may be called for
// every frame that is drawn: the newest viewpoint is sent at most 60 times per second. The last one holds. Nothing is
// heard of one that the server refuses.
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

// SetPose tells the others where the object stands. Like viewpoints, the newest pose is sent at most 60 times per
// second.
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

// SetLimits bounds what this client is sent, in bit/s: at most so much, and what its link is known to carry, below
// which the server's estimate does not fall. 0 is no limit. It returns when the server has taken them.
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

// posed turns a pose that the server passed on into an event.
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
