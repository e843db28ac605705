package allocate

import (
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Viewpoint is where a receiver looks from and what it sees, in room coordinates: metres, right-handed, y up.
type Viewpoint struct {
	// At is when the receiver was, or will be, there.
	At       time.Time
	Position [3]float64
	// Orientation is a unit quaternion x, y, z, w. Without rotation the receiver looks along -z with +y up.
	Orientation [4]float64
	// FOV is the vertical angle of view in radians, Aspect the width of the view by its height. Where they are 0 or absurd, a headset's are taken.
	FOV, Aspect float64
}

// Pose takes an object's own coordinates to those of the room: scaled, then rotated, then moved. The zero value changes nothing.
type Pose struct {
	Position    [3]float64
	Orientation [4]float64 // unit quaternion x, y, z, w; zero is no rotation
	Scale       float64    // zero is 1
}

// Level is one quality of a tile.
type Level struct {
	// Rate is measured over whole frames, or declared. A Paused level with rate 0 is taken to cost as much per point as the level next to it.
	Rate volumetric.Bitrate
	// Detail is the level's number of points as a share of the highest level's, 0 to 1; in volumetric.ModeDescriptions as a share of all
	// descriptions together. Where it is 0 the shares of the rates are taken.
	Detail float64
	// Paused tells that the publisher does not send the level now: it has to be asked first, which costs a round trip.
	Paused bool
}

// Tile is what can be sent of one tile, and what is known about it.
type Tile struct {
	// Box is in the object's own coordinates. Without any size it is unknown, and the tile counts as seen.
	Box volumetric.BoundingBox
	// Levels are the qualities, by index.
	Levels []Level
	// Choice is what the receiver asked for.
	Choice Choice
	// Current is what the tile was allocated last, empty for nothing. Changing it has a price.
	Current QualitySet
}

// Object is a publication as one receiver sees it.
type Object struct {
	Pose Pose
	// Priority multiplies the value of all tiles of the object. 1 is usual, and 0 is taken for it.
	Priority float64
	Mode     volumetric.Mode
	Tiles    []Tile
}

// Scene is everything that can be sent to one receiver.
type Scene struct {
	// Budget is what media may take. It has to be of the kind that the levels' rates are.
	Budget volumetric.Bitrate
	// Viewpoint is nil where the receiver told none: then all tiles of the same priority are worth the same.
	Viewpoint *Viewpoint
	Objects   []Object
}

// Result is what one receiver is to be sent. Its memory is the allocator's: it is valid until the next call.
type Result struct {
	// Tiles are the decisions by object and tile.
	Tiles [][]Decision
	// Rate is what the decisions take together. It exceeds the budget only where one tile is sent although nothing fits.
	Rate volumetric.Bitrate
	// Wanted is what would be sent with an unlimited budget, wherever the receiver looked: it may turn at any time, and is to have the budget then.
	Wanted volumetric.Bitrate
}
