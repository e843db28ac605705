package bridge

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// The types of datagram that VR2Gather's connector does not know. 4 and 5 mean something to a relative of it.
const (
	// datagramView says where the program looks from. After the type follow nine numbers of 32 bits (IEEE 754),
	// little-endian as everything here: position x, y, z in metres and orientation x, y, z, w in the room's
	// coordinates, the vertical angle of what is seen in degrees, and its width over its height.
	datagramView = 16
	// datagramScene says where the published object stands: position, orientation and scale as eight such numbers. Then
	// come two unsigned numbers of 32 bits, the first tile of those whose boxes follow and how many follow, and six
	// numbers for each box: its least and its greatest corner in the object's coordinates.
	datagramScene = 17
)

const (
	typeBytes  = 4
	viewBytes  = 9 * 4
	sceneBytes = 8*4 + 2*4
	boxBytes   = 6 * 4
)

// errScene says that a datagram about the scene cannot be read.
var errScene = errors.New("malformed scene datagram")

// Scene keeps what the connector says about where things are. The boxes of many tiles come in several datagrams.
type Scene struct {
	boxes []volumetric.BoundingBox
	known []bool
}

// NewScene knows nothing of an object of so many tiles.
func NewScene(tiles int) *Scene {
	return &Scene{boxes: make([]volumetric.BoundingBox, tiles), known: make([]bool, tiles)}
}

// about tells whether a datagram is about the scene.
func (s *Scene) about(datagram []byte) bool {
	if len(datagram) < typeBytes {
		return false
	}
	kind := binary.LittleEndian.Uint32(datagram)
	return kind == datagramView || kind == datagramScene
}

// placed is where the connector's object stands, with the boxes of some of its tiles.
type placed struct {
	pose  *signal.Pose
	first int
}

// read reads a datagram about the scene: where the program looks from, or where its object stands. Errors say what is
// wrong with it.
func (s *Scene) read(datagram []byte) (*signal.Viewpoint, *placed, error) {
	body := datagram[typeBytes:]
	if binary.LittleEndian.Uint32(datagram) == datagramView {
		if len(body) < viewBytes {
			return nil, nil, fmt.Errorf("%w: %d bytes, expected %d", errScene, len(body), viewBytes)
		}
		v := &signal.Viewpoint{Position: vector(body), Orientation: rotation(body[12:]), FOV: number(body[28:]),
			Aspect: number(body[32:])}
		return v, nil, v.Validate()
	}
	if len(body) < sceneBytes {
		return nil, nil, fmt.Errorf("%w: %d bytes, expected at least %d", errScene, len(body), sceneBytes)
	}
	first, count := binary.LittleEndian.Uint32(body[32:]), binary.LittleEndian.Uint32(body[36:])
	rest := body[sceneBytes:]
	if uint64(count)*boxBytes > uint64(len(rest)) || uint64(first)+uint64(count) > uint64(len(s.boxes)) {
		return nil, nil, fmt.Errorf("%w: %d boxes from tile %d on in %d bytes, of %d tiles", errScene, count, first,
			len(rest), len(s.boxes))
	}
	boxes := make([]volumetric.BoundingBox, count)
	for i := range boxes {
		for axis := range 3 {
			boxes[i].Min[axis], boxes[i].Max[axis] = float32(number(rest[i*boxBytes+4*axis:])), float32(number(rest[i*boxBytes+12+4*axis:]))
		}
	}
	p := &signal.Pose{Publication: publication, Position: vector(body), Orientation: rotation(body[12:]),
		Scale: number(body[28:]), Boxes: boxes}
	return nil, &placed{p, int(first)}, p.Validate()
}

// place takes where the object stands, and gives it with the boxes of all tiles, or with none while some are not known.
func (s *Scene) place(p *placed) *signal.Pose {
	copy(s.boxes[p.first:], p.pose.Boxes)
	for i := range p.pose.Boxes {
		s.known[p.first+i] = true
	}
	p.pose.Boxes = nil
	if !slices.Contains(s.known, false) {
		p.pose.Boxes = slices.Clone(s.boxes)
	}
	return p.pose
}

// publication stands in a pose while it is checked. Which publication it is about the connector does not say: it has
// one.
const publication = "body"

func number(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) }

func vector(b []byte) [3]float64 { return [3]float64{number(b), number(b[4:]), number(b[8:])} }

func rotation(b []byte) signal.Rotation {
	return signal.Rotation{number(b), number(b[4:]), number(b[8:]), number(b[12:])}
}
