package allocate

import (
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Viewpoint is the pose and the view of a receiver, in room coordinates: metres, right-handed, y up.
type Viewpoint struct {
	// At is the time of the pose, which may be in the future.
	At       time.Time
	Position [3]float64
	// Orientation is a unit quaternion x, y, z, w. Without rotation the receiver looks along -z with +y up.
	Orientation [4]float64
	// FOV is the vertical angle of view in radians, Aspect the ratio of width to height. Zero or invalid values are
	// replaced by those of a headset.
	FOV, Aspect float64
}

// Pose transforms an object's own coordinates to those of the room: scaled, then rotated, then moved. The zero value
// changes nothing.
type Pose struct {
	Position    [3]float64
	Orientation [4]float64 // unit quaternion x, y, z, w; zero is no rotation
	Scale       float64    // zero is 1
}

// Level is one quality of a tile.
type Level struct {
	// Rate is measured over whole frames, or declared. A Paused level with rate 0 is assumed to have the same rate per
	// point as the nearest level.
	Rate volumetric.Bitrate
	// Detail is the number of points relative to the highest level, 0 to 1; in volumetric.ModeDescriptions relative to
	// all descriptions together. If Detail is 0, the ratios of the rates are used.
	Detail float64
	// Pixels is the number of pixels of a picture at this level, 0 if unknown. FrameRate is the number of frames per
	// second, 0 if unknown. Objects other than pictures have neither.
	Pixels, FrameRate float64
	// Paused is set if the publisher does not send the level now. The publisher has to be asked first, which takes a
	// round trip.
	Paused bool
}

// Tile describes the levels of one tile and its state.
type Tile struct {
	// Box is in the object's own coordinates. A box without size is unknown, and the tile counts as seen.
	Box volumetric.BoundingBox
	// Levels are the qualities, by index.
	Levels []Level
	// Choice is the receiver's choice.
	Choice Choice
	// Current is the last allocation of the tile, empty for off. A change has a cost.
	Current QualitySet
	// Held is set if the tile shall not be raised above Current, because its last change is too recent. A choice of the
	// receiver takes effect nevertheless.
	Held bool
}

// Picture distinguishes flat pictures from objects with depth.
type Picture uint8

// The kinds of picture.
const (
	// PictureNone is an object with depth.
	PictureNone Picture = iota
	// PictureCamera is a picture of a scene.
	PictureCamera
	// PictureScreen is a picture with text, which is worth little at a low resolution.
	PictureScreen
)

// Object is a publication from one receiver's view.
type Object struct {
	Pose Pose
	// Priority multiplies the value of all tiles of the object. The default is 1, also for 0.
	Priority float64
	Mode     volumetric.Mode
	// Picture is the kind of a flat picture. The picture is on the side of its only tile's box towards +z of the
	// object.
	Picture Picture
	Tiles   []Tile
}

// Scene is everything that can be sent to one receiver.
type Scene struct {
	// Budget is the media budget. Budget must be measured in the same way as the levels' rates.
	Budget volumetric.Bitrate
	// Viewpoint is nil if the receiver has reported none: then all tiles of the same priority have the same value.
	Viewpoint *Viewpoint
	Objects   []Object
}

// Result is an allocation for one receiver. The memory belongs to the allocator and is valid until the next call.
type Result struct {
	// Tiles are the decisions by object and tile.
	Tiles [][]Decision
	// Rate is the sum of the decisions' rates. Rate exceeds the budget only if one tile is sent although nothing fits.
	Rate volumetric.Bitrate
	// Wanted is the rate with an unlimited budget, for any viewpoint: the receiver may turn at any time and then needs
	// the budget.
	Wanted volumetric.Bitrate
}
