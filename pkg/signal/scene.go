package signal

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Bounds on places and sights.
const (
	// MaxCoordinate bounds every coordinate in metres: nobody confers over more than 1000 km, and squares of such numbers stay exact enough.
	MaxCoordinate = 1e6
	// MinFOV and MaxFOV bound the vertical angle of a field of view in degrees. Beyond them a perspective picture has no use.
	MinFOV, MaxFOV = 1, 170
	// MinAspect and MaxAspect bound the width of a picture over its height.
	MinAspect, MaxAspect = 0.1, 10
	// MinScale and MaxScale bound how much larger than published an object stands in the room.
	MinScale, MaxScale = 0.001, 1000
	// MinPriority and MaxPriority bound what a publisher may ask for an object; 1 is usual.
	MinPriority, MaxPriority = 0.01, 100
	// unitTolerance is how far the square of a rotation's length may be from 1: components rounded to two decimals are 0.02 off.
	unitTolerance = 0.02
)

// Vector is a place or a direction in the room in metres: right-handed, x right, y up, z towards the viewer, as boxes are.
type Vector [3]float64

// Rotation is a unit quaternion x, y, z, w. The rotation 0, 0, 0, 1 looks along -z with +y up.
type Rotation [4]float64

// UnmarshalJSON reads a list of unmarshalNumbers three numbers.
func (v *Vector) UnmarshalJSON(data []byte) error { return unmarshalNumbers(data, v[:]) }

// UnmarshalJSON reads a list of unmarshalNumbers four numbers.
func (r *Rotation) UnmarshalJSON(data []byte) error { return unmarshalNumbers(data, r[:]) }

// unmarshalNumbers reads a list of as many numbers as there is room for. encoding/json would pass over those that are missing or too many.
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

// Viewpoint says where a receiver looks from and what it sees, at most 60 times per second. The last one holds until the next.
type Viewpoint struct {
	Header
	// At is when the receiver's eye was there, by the server's clock as Time tells it, in microseconds of UTC since 1970; 0 is when the
	// server reads the message.
	At          int64    `json:"at_us,omitempty"`
	Position    Vector   `json:"position"`
	Orientation Rotation `json:"orientation"`
	// FOV is the vertical angle of what is seen, in degrees, and Aspect its width over its height.
	FOV    float64 `json:"fov"`
	Aspect float64 `json:"aspect"`
}

// Pose says where an object stands in the room: a point of the publication's boxes is scaled, turned and moved, in this order. Its publisher
// sends it, and the server passes it on to the others with the participant's name, the latest one at most 30 times per second.
type Pose struct {
	Header
	// Participant is who publishes the object; only the server fills it in.
	Participant string   `json:"participant,omitempty"`
	Publication string   `json:"publication"`
	Position    Vector   `json:"position"`
	Orientation Rotation `json:"orientation"`
	// Scale is how much larger than published the object stands in the room; 0 counts as 1.
	Scale float64 `json:"scale,omitempty"`
	// Boxes are the tiles' boxes as they are now, one for each, in the publication's own coordinates. Without them the last ones hold.
	Boxes []volumetric.BoundingBox `json:"boxes,omitempty"`
	// Priority is what the object is worth to its receivers beside others of the same size in sight; 0 counts as 1.
	Priority float64 `json:"priority,omitempty"`
}

// Arrange says where a receiver has put objects in its own view of the room, such as around a table: what it is sent is then decided by that. Each message is the
// whole state; objects that it does not name stand where their publishers say.
type Arrange struct {
	Header
	Objects []Placement `json:"objects"`
}

// Placement is where a receiver sees one object: scaled, turned and moved, in this order, in place of its publisher's pose.
type Placement struct {
	volumetric.PublicationRef
	Position    Vector   `json:"position"`
	Orientation Rotation `json:"orientation"`
	// Scale is how much larger than published the object is seen; 0 counts as 1.
	Scale float64 `json:"scale,omitempty"`
}

// Validate implements Request. Every time is valid: the server bounds it by its own clock.
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

// Validate implements Request. Whether the client publishes such an object of as many tiles is not its matter.
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

// Validate implements Request. Objects may be named that are not there yet.
func (m *Arrange) Validate() error { return m.reply(m.check()) }

func (m *Arrange) check() error {
	if m.Objects == nil {
		return invalid("objects is missing")
	}
	if len(m.Objects) > MaxPlacements {
		return invalid("%d objects, expected at most %d", len(m.Objects), MaxPlacements)
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

// checkBox refuses boxes that are inside out or out of all bounds.
func checkBox(what string, box *volumetric.BoundingBox) error {
	for axis := range box.Min {
		low, high := float64(box.Min[axis]), float64(box.Max[axis])
		if !(low <= high) {
			return invalid("%s ends before it begins: min %g, max %g", what, box.Min, box.Max)
		}
		if !(math.Abs(low) <= MaxCoordinate && math.Abs(high) <= MaxCoordinate) {
			return invalid("%s is min %g, max %g, expected coordinates up to %g", what, box.Min, box.Max, float64(MaxCoordinate))
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

// within refuses numbers outside, and those that are none.
func checkRange(what string, number, least, most float64) error {
	if !(number >= least && number <= most) {
		return invalid("%s is %g, expected %g to %g", what, number, least, most)
	}
	return nil
}
