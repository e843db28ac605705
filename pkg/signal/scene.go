package signal

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Bounds on coordinates and views.
const (
	// MaxCoordinate is the bound of every coordinate, in metres. 1000 km exceed every conference,
	// and squares of such numbers are still exact enough.
	MaxCoordinate = 1e6
	// MinFOV and MaxFOV are the bounds of the vertical field of view, in degrees. A perspective
	// image beyond them is useless.
	MinFOV, MaxFOV = 1, 170
	// MinAspect and MaxAspect are the bounds of the aspect ratio, width over height.
	MinAspect, MaxAspect = 0.1, 10
	// MinScale and MaxScale are the bounds of the scale of an object in the room, relative to its
	// published size.
	MinScale, MaxScale = 0.001, 1000
	// MinPriority and MaxPriority are the bounds of the priority that a publisher requests for an
	// object; the default is 1.
	MinPriority, MaxPriority = 0.01, 100
	// unitTolerance is the tolerance of the squared norm of a rotation around 1. Components rounded
	// to two decimals change the squared norm by 0.02.
	unitTolerance = 0.02
)

// Vector is a position or a direction in the room, in metres. As for boxes, the coordinates are
// right-handed: x right, y up, z towards the viewer.
type Vector [3]float64

// Rotation is a unit quaternion x, y, z, w. The rotation 0, 0, 0, 1 looks along -z with +y up.
type Rotation [4]float64

// UnmarshalJSON decodes a list of exactly three numbers.
func (v *Vector) UnmarshalJSON(data []byte) error { return unmarshalNumbers(data, v[:]) }

// UnmarshalJSON decodes a list of exactly four numbers.
func (r *Rotation) UnmarshalJSON(data []byte) error { return unmarshalNumbers(data, r[:]) }

// unmarshalNumbers decodes a list of exactly len(into) numbers. encoding/json would ignore missing
// and surplus numbers.
func unmarshalNumbers(data []byte, into []float64) error {
	var read []*float64
	if err := json.Unmarshal(data, &read); err != nil || len(read) != len(into) {
		return fmt.Errorf("expected a list of %d numbers, got %.64s", len(into), data)
	}
	for i, number := range read {
		if number == nil {
			return fmt.Errorf("expected a list of %d numbers, got %.64s", len(into), data)
		}
		into[i] = *number
	}
	return nil
}

// Viewpoint describes the eye position and the field of view of a receiver. A client sends at most
// 60 per second. A viewpoint is valid until the next one.
type Viewpoint struct {
	Header
	// At is the time at which the receiver's eye was at Position, by the server's clock as reported
	// by Time, in microseconds of UTC since 1970. 0 means the time at which the server reads the
	// message.
	At          int64    `json:"at_us,omitempty"`
	Position    Vector   `json:"position"`
	Orientation Rotation `json:"orientation"`
	// FOV is the vertical field of view, in degrees. Aspect is width over height.
	FOV    float64 `json:"fov"`
	Aspect float64 `json:"aspect"`
}

// Pose describes the placement of an object in the room: a point of the publication's boxes is
// scaled, rotated and translated, in this order. The publisher sends the pose, and the server
// forwards the latest one to the other participants, with the publisher's name, at most 30 times
// per second.
type Pose struct {
	Header
	// Participant is the publisher of the object. Only the server sets this field.
	Participant string   `json:"participant,omitempty"`
	Publication string   `json:"publication"`
	Position    Vector   `json:"position"`
	Orientation Rotation `json:"orientation"`
	// Scale is the size of the object in the room relative to its published size; 0 means 1.
	Scale float64 `json:"scale,omitempty"`
	// Boxes contains the current bounding box of each tile, in the publication's own coordinates.
	// If Boxes is absent, the previous boxes remain valid.
	Boxes []volumetric.BoundingBox `json:"boxes,omitempty"`
	// Priority is the weight of the object relative to other objects of the same visible size; 0
	// means 1.
	Priority float64 `json:"priority,omitempty"`
}

// Arrange describes the placement of objects in a receiver's own view of the room, for example
// around a table. The server allocates bandwidth by this placement. Each message contains the
// complete state; objects that the message does not name have the pose sent by their publishers.
type Arrange struct {
	Header
	Objects []Placement `json:"objects"`
}

// Placement describes the placement of one object for one receiver: scaled, rotated and translated,
// in this order, instead of its publisher's pose.
type Placement struct {
	volumetric.PublicationRef
	Position    Vector   `json:"position"`
	Orientation Rotation `json:"orientation"`
	// Scale is the visible size of the object relative to its published size; 0 means 1.
	Scale float64 `json:"scale,omitempty"`
}

// Validate implements Request. Every time is valid, because the server limits At by its own clock.
func (m *Viewpoint) Validate() error { return m.reply(m.check()) }

func (m *Viewpoint) check() error {
	if err := m.Position.check("position"); err != nil {
		return err
	}
	if err := m.Orientation.check("orientation"); err != nil {
		return err
	}
	if err := checkRange("fov", m.FOV, MinFOV, MaxFOV); err != nil {
		return err
	}
	return checkRange("aspect", m.Aspect, MinAspect, MaxAspect)
}

// Validate implements Request. The client need not publish such an object with this number of
// tiles.
func (m *Pose) Validate() error { return m.reply(m.check()) }

func (m *Pose) check() error {
	if err := volumetric.ValidateName("publication", m.Publication); err != nil {
		return err
	}
	if err := m.Position.check("position"); err != nil {
		return err
	}
	if err := m.Orientation.check("orientation"); err != nil {
		return err
	}
	if m.Scale != 0 {
		if err := checkRange("scale", m.Scale, MinScale, MaxScale); err != nil {
			return err
		}
	}
	if m.Priority != 0 {
		if err := checkRange("priority", m.Priority, MinPriority, MaxPriority); err != nil {
			return err
		}
	}
	if len(m.Boxes) > volumetric.MaxTiles {
		return invalid("%d boxes, expected at most %d", len(m.Boxes), volumetric.MaxTiles)
	}
	for i := range m.Boxes {
		if err := checkBox(fmt.Sprintf("box %d", i), &m.Boxes[i]); err != nil {
			return err
		}
	}
	return nil
}

// Validate implements Request. The objects need not exist yet.
func (m *Arrange) Validate() error { return m.reply(m.check()) }

func (m *Arrange) check() error {
	if err := checkList("objects", "objects", m.Objects, MaxPlacements); err != nil {
		return err
	}
	for i := range m.Objects {
		if err := m.Objects[i].check(); err != nil {
			return fmt.Errorf("object %d: %w", i, err)
		}
	}
	return nil
}

func (o *Placement) check() error {
	if err := volumetric.ValidateName("participant", o.Participant); err != nil {
		return err
	}
	if err := volumetric.ValidateName("publication", o.Publication); err != nil {
		return err
	}
	if err := o.Position.check("position"); err != nil {
		return err
	}
	if err := o.Orientation.check("orientation"); err != nil {
		return err
	}
	if o.Scale != 0 {
		return checkRange("scale", o.Scale, MinScale, MaxScale)
	}
	return nil
}

// checkBox returns an error if a minimum exceeds its maximum or a coordinate exceeds MaxCoordinate.
func checkBox(what string, box *volumetric.BoundingBox) error {
	for axis := range box.Min {
		low, high := float64(box.Min[axis]), float64(box.Max[axis])
		if !(low <= high) {
			return invalid(
				"%s has min %g and max %g, expected min to be at most max on every axis",
				what,
				box.Min,
				box.Max,
			)
		}
		if !(math.Abs(low) <= MaxCoordinate && math.Abs(high) <= MaxCoordinate) {
			return invalid(
				"%s is min %g, max %g, expected coordinates up to %g",
				what,
				box.Min,
				box.Max,
				float64(MaxCoordinate),
			)
		}
	}
	return nil
}

func (v Vector) check(what string) error {
	for _, coordinate := range v {
		if err := checkRange(what, coordinate, -MaxCoordinate, MaxCoordinate); err != nil {
			return err
		}
	}
	return nil
}

func (r Rotation) check(what string) error {
	square := 0.0
	for _, component := range r {
		square += component * component
	}
	if !(math.Abs(square-1) <= unitTolerance) {
		return invalid("%s is %v, expected a unit quaternion", what, [4]float64(r))
	}
	return nil
}

// checkRange returns an error if number is outside of the range or NaN.
func checkRange(what string, number, least, most float64) error {
	if !(number >= least && number <= most) {
		return invalid("%s is %g, expected %g to %g", what, number, least, most)
	}
	return nil
}
