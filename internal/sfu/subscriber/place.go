package subscriber

import (
	"math"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// poseInterval: the others of a room get the poses of one object at most 30 times per second, the usual rate of frames.
const poseInterval = time.Second / 30

// The motion that changes what is worth sending. At 2 m, one centimetre and half a degree are about a fiftieth of the
// width of a person.
const (
	stillDistance = 0.01                // metres
	stillTurn     = 0.5 * math.Pi / 180 // radians
)

// Place is where an object stands in its room.
type Place struct {
	// latest is the last pose, with the boxes that hold, nil before the first.
	latest *signal.Pose
	// counted is the pose of the last motion that counted as one.
	counted allocate.Pose
	// passed is when the others were last told. pending says that the latest pose has not been passed on yet, boxed
	// that it has boxes that have not.
	passed         time.Time
	pending, boxed bool
}

// Take keeps a pose and reports whether it changes what is worth sending. Without boxes, the last ones hold.
func (p *Place) Take(m *signal.Pose) (moved bool) {
	latest := &signal.Pose{
		Publication: m.Publication, Position: m.Position, Orientation: m.Orientation, Scale: m.Scale, Boxes: m.Boxes,
		Priority: m.Priority,
	}
	moved = p.latest == nil || p.latest.Priority != m.Priority
	switch {
	case len(m.Boxes) > 0:
		moved = moved || p.latest == nil || !slices.Equal(p.latest.Boxes, m.Boxes)
		p.boxed = true
	case p.latest != nil:
		latest.Boxes = p.latest.Boxes
	}
	pose := allocationPose(latest)
	moved = moved || pose.Scale != p.counted.Scale ||
		apart(pose.Position, p.counted.Position, pose.Orientation, p.counted.Orientation)
	if moved {
		p.counted = pose
	}
	p.latest, p.pending = latest, true
	return moved
}

// Latest returns the last pose, with the boxes that hold, nil before the first.
func (p *Place) Latest() *signal.Pose { return p.latest }

// Pending reports whether the latest pose has not been passed on yet.
func (p *Place) Pending() bool { return p.pending }

// Due returns when the latest pose may be passed on.
func (p *Place) Due() time.Time { return p.passed.Add(poseInterval) }

// Next returns the message that passes the latest pose on, a new one at each call of the function, and notes that it is
// passed on.
func (p *Place) Next(participant string, now time.Time) func() signal.Message {
	pose := *p.latest
	pose.Participant = participant
	if !p.boxed {
		pose.Boxes = nil
	}
	p.passed, p.pending, p.boxed = now, false, false
	return func() signal.Message { each := pose; return &each }
}

// box is that of a tile as it is now.
func (p *Place) box(description *volumetric.Publication, tile int) volumetric.BoundingBox {
	if p.latest != nil && tile < len(p.latest.Boxes) {
		return p.latest.Boxes[tile]
	}
	return description.Tiles[tile].Box
}

// pose is where an allocator takes the object to be.
func (p *Place) pose() allocate.Pose {
	if p.latest == nil {
		return allocate.Pose{Orientation: [4]float64{3: 1}, Scale: 1}
	}
	return allocationPose(p.latest)
}

func (p *Place) priority() float64 {
	if p.latest == nil || p.latest.Priority == 0 {
		return 1
	}
	return p.latest.Priority
}

func allocationPose(m *signal.Pose) allocate.Pose {
	pose := allocate.Pose{Position: m.Position, Orientation: normalised(m.Orientation), Scale: m.Scale}
	if pose.Scale == 0 {
		pose.Scale = 1
	}
	return pose
}

// normalised makes a rotation whose components were rounded a unit quaternion again.
func normalised(r signal.Rotation) [4]float64 {
	length := math.Sqrt(r[0]*r[0] + r[1]*r[1] + r[2]*r[2] + r[3]*r[3])
	for i := range r {
		r[i] /= length
	}
	return r
}

// apart reports whether two places, or two rotations, differ by a motion that counts.
func apart(p1, p2 [3]float64, q1, q2 [4]float64) bool {
	square, dot := 0.0, 0.0
	for i := range p1 {
		square += (p1[i] - p2[i]) * (p1[i] - p2[i])
	}
	for i := range q1 {
		dot += q1[i] * q2[i]
	}
	// The cosine of half the angle between two rotations is the dot product of their quaternions, either sign of which
	// means the same rotation.
	return square > stillDistance*stillDistance || math.Abs(dot) < math.Cos(stillTurn/2)
}

// maxViewpointAge is the age up to which a client's stamp is believed. Clients adjust their clocks to the server's by
// messages, to some milliseconds. An older stamp is wrong, and the time of reading is closer.
const maxViewpointAge = time.Second

// ViewpointOf returns the viewpoint that a receiver reported in a message, which was read at that time.
func ViewpointOf(m *signal.Viewpoint, read time.Time) allocate.Viewpoint {
	at := read
	if stamp := time.UnixMicro(m.At); m.At != 0 && stamp.Before(read) && read.Sub(stamp) <= maxViewpointAge {
		at = stamp
	}
	return allocate.Viewpoint{
		At: at, Position: m.Position, Orientation: normalised(m.Orientation), FOV: m.FOV * math.Pi / 180,
		Aspect: m.Aspect,
	}
}
