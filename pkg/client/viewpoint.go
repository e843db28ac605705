package client

import (
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

func rotation(q [4]float64) signal.Rotation {
	if q == ([4]float64{}) {
		return signal.Rotation{0, 0, 0, 1}
	}
	return q
}
