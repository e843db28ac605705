package subscriber

import (
	"math"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// poseInterval bounds the poses of one object to 30 per second, the usual frame rate.
const poseInterval = time.Second / 30

// The minimum motion that changes the allocation. At 2 m, one centimetre and half a degree are about a fiftieth of the
// width of a person.
const (
	stillDistance = 0.01                // metres
	stillTurn     = 0.5 * math.Pi / 180 // radians
)

// Place is the place of an object in its room.
type Place struct {
	// latest is the last pose with the valid boxes, nil before the first pose.
	latest *signal.Pose
	// counted is the pose at the last relevant motion.
	counted allocate.Pose
	// passed is the time of the last message to the others. pending is set if the latest pose has not been sent, boxed
	// if its boxes have not been sent.
	passed         time.Time
	pending, boxed bool
}

// Take stores a pose and reports whether the motion is relevant. A pose without boxes keeps the last boxes.
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

// Latest returns the last pose with the valid boxes, nil before the first pose.
func (p *Place) Latest() *signal.Pose { return p.latest }

// Pending reports whether the latest pose has not been sent to the others.
func (p *Place) Pending() bool { return p.pending }

// Due returns the time from which the latest pose may be sent.
func (p *Place) Due() time.Time { return p.passed.Add(poseInterval) }

// Next marks the latest pose as sent and returns a function that returns a new message with the pose at each call.
func (p *Place) Next(participant string, now time.Time) func() signal.Message {
	pose := *p.latest
	pose.Participant = participant
	if !p.boxed {
		pose.Boxes = nil
	}
	p.passed, p.pending, p.boxed = now, false, false
	return func() signal.Message { each := pose; return &each }
}

// box returns the present bounding box of a tile, the default panel for a picture without a size.
func (p *Place) box(description *volumetric.Publication, tile int) volumetric.BoundingBox {
	box := description.Tiles[tile].Box
	if p.latest != nil && tile < len(p.latest.Boxes) {
		box = p.latest.Boxes[tile]
	}
	if description.Picture != nil && box.Min == box.Max {
		return volumetric.DefaultPanel(description.Picture.Source)
	}
	return box
}

// pose returns the pose of the object for the allocator.
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

// normalised scales a rotation with rounded components to a unit quaternion.
func normalised(r signal.Rotation) [4]float64 {
	length := math.Sqrt(r[0]*r[0] + r[1]*r[1] + r[2]*r[2] + r[3]*r[3])
	for i := range r {
		r[i] /= length
	}
	return r
}

// apart reports whether two positions or two rotations differ by a relevant motion.
func apart(p1, p2 [3]float64, q1, q2 [4]float64) bool {
	square, dot := 0.0, 0.0
	for i := range p1 {
		square += (p1[i] - p2[i]) * (p1[i] - p2[i])
	}
	for i := range q1 {
		dot += q1[i] * q2[i]
	}
	// The cosine of half the angle between two rotations is the dot product of their quaternions. Both signs of a
	// quaternion mean the same rotation.
	return square > stillDistance*stillDistance || math.Abs(dot) < math.Cos(stillTurn/2)
}

// maxViewpointAge is the maximum age of a client's timestamp. Clients synchronise their clocks with the server by
// messages, to within some milliseconds. An older timestamp is wrong, and the time of reading is more accurate.
const maxViewpointAge = time.Second

// ViewpointOf converts a viewpoint message that was read at the given time. The timestamp in the message is a time of
// this host's clock.
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
