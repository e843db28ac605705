package gallery

import (
	"fmt"
	"math"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
)

// The room is the viewer's table for 14 people, at which each person looks at the middle (seat in
// clients/web/src/scene/seating.ts). The receiver has seat 0. Opposite, on seat 7, is the screen. The figures have the
// seats 5 and 9, the webcams the others. With a horizontal view of 91°, the seats 4 to 10 are in view, 3 and 11 at its
// edges, and 1, 2, 12 and 13 beside the receiver.
const (
	seats      = 14
	elbowRoom  = 1.1 // metres along the edge of the table
	screenSeat = 7
	eyeHeight  = 1.25
)

// The view of the receiver: a window of 16:9.
const (
	fov    = math.Pi / 3
	aspect = 16.0 / 9
)

// framesPerSecond is the rate of all publications except where a quality states another.
const framesPerSecond = 30

// figureSeats are the seats of the two figures.
var figureSeats = [...]int{5, 9}

// webcamLevels are the qualities of a webcam, as browsers encode VP8 for conferences.
var webcamLevels = []volumetric.QualityLevel{
	{Name: "180p", Bitrate: 150e3, Width: 320, Height: 180, FrameRate: 15},
	{Name: "360p", Bitrate: 500e3, Width: 640, Height: 360, FrameRate: framesPerSecond},
	{Name: "720p", Bitrate: 1700e3, Width: 1280, Height: 720, FrameRate: framesPerSecond},
}

// screenLevels are the qualities of a screen: a small picture, text at full resolution, and smooth motion.
var screenLevels = []volumetric.QualityLevel{
	{Name: "540p", Bitrate: 300e3, Width: 960, Height: 540, FrameRate: 15},
	{Name: "1080p5", Bitrate: 800e3, Width: 1920, Height: 1080, FrameRate: 5},
	{Name: "1080p30", Bitrate: 2500e3, Width: 1920, Height: 1080, FrameRate: framesPerSecond},
}

// figure is a person of four tiles at three qualities of 1.5, 6 and 24 Mbit/s.
var figure = testbed.Load{Name: "body", Tiles: 4, Qualities: 3, FrameBytes: 25_000, Step: 4, Rate: framesPerSecond}

// guest is one participant with its only publication.
type guest struct {
	identity string
	pose     client.Pose
	// levels and source describe a picture, nil for a figure.
	levels []volumetric.QualityLevel
	source volumetric.PictureSource
}

// guests returns all participants except the receiver, in the order of seats.
func guests() []guest {
	var all []guest
	for n := 1; n < seats; n++ {
		g := guest{identity: fmt.Sprintf("webcam-%02d", n), pose: seat(n), levels: webcamLevels,
			source: volumetric.SourceCamera}
		switch n {
		case screenSeat:
			g.identity, g.levels, g.source = "screen", screenLevels, volumetric.SourceScreen
		case figureSeats[0], figureSeats[1]:
			g.identity, g.levels, g.pose.Boxes = fmt.Sprintf("figure-%02d", n), nil, figureBoxes()
		}
		all = append(all, g)
	}
	return all
}

// seat returns the pose of a seat, whose front is +z towards the middle.
func seat(n int) client.Pose {
	angle := 2 * math.Pi * float64(n) / seats
	radius := seats * elbowRoom / (2 * math.Pi)
	half := (angle + math.Pi) / 2
	return client.Pose{
		Position:    [3]float64{radius * math.Sin(angle), 0, radius * math.Cos(angle)},
		Orientation: [4]float64{0, math.Sin(half), 0, math.Cos(half)},
	}
}

// figureBoxes returns the boxes of the tiles of a figure: left and right, front and back.
func figureBoxes() []volumetric.BoundingBox {
	var boxes []volumetric.BoundingBox
	for _, x := range []float32{-0.3, 0} {
		for _, z := range []float32{-0.2, 0} {
			boxes = append(boxes, volumetric.BoundingBox{
				Min: [3]float32{x, 0, z}, Max: [3]float32{x + 0.3, 1.75, z + 0.2},
			})
		}
	}
	return boxes
}

// viewpoint returns the view from seat 0, turned from the middle of the table to the left by an angle in radians.
func viewpoint(left float64) allocate.Viewpoint {
	at := seat(0).Position
	at[1] = eyeHeight
	return allocate.Viewpoint{
		Position: at, Orientation: [4]float64{0, math.Sin(left / 2), 0, math.Cos(left / 2)}, FOV: fov, Aspect: aspect,
	}
}

// name returns the name of the guest's publication.
func (g *guest) name() string {
	if g.levels == nil {
		return figure.Name
	}
	return string(g.source)
}

// ref returns the guest's publication.
func (g *guest) ref() volumetric.PublicationRef {
	return volumetric.PublicationRef{Participant: g.identity, Publication: g.name()}
}

// qualities returns the levels of the guest's publication with the rates of all tiles together.
func (g *guest) qualities() []volumetric.QualityLevel {
	if g.levels != nil {
		return g.levels
	}
	levels := figure.Publication().Qualities
	for i := range levels {
		levels[i].Bitrate *= volumetric.Bitrate(figure.Tiles)
	}
	return levels
}

// object describes the guest for the allocator, as the server does.
func (g *guest) object() allocate.Object {
	o := allocate.Object{
		Mode: volumetric.ModeAlternatives,
		Pose: allocate.Pose{Position: g.pose.Position, Orientation: g.pose.Orientation},
	}
	if g.levels == nil {
		levels := figure.Publication().Qualities
		for _, box := range g.pose.Boxes {
			tile := allocate.Tile{Box: box}
			for _, l := range levels {
				tile.Levels = append(tile.Levels, allocate.Level{
					Rate: l.Bitrate, Detail: float64(l.Bitrate) / float64(levels[len(levels)-1].Bitrate),
				})
			}
			o.Tiles = append(o.Tiles, tile)
		}
		return o
	}
	o.Picture = allocate.PictureCamera
	if g.source == volumetric.SourceScreen {
		o.Picture = allocate.PictureScreen
	}
	tile := allocate.Tile{Box: volumetric.DefaultPanel(g.source)}
	for i := range g.levels {
		l := &g.levels[i]
		tile.Levels = append(tile.Levels, allocate.Level{
			Rate: l.Bitrate, Pixels: float64(l.Pixels()), FrameRate: l.FrameRate,
		})
	}
	o.Tiles = []allocate.Tile{tile}
	return o
}

// sceneOf returns the scene of all guests.
func sceneOf(all []guest) allocate.Scene {
	var scene allocate.Scene
	for i := range all {
		scene.Objects = append(scene.Objects, all[i].object())
	}
	return scene
}
