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

// Datagram types that VR2Gather's connector does not have. 4 and 5 are used by a related program.
const (
	// datagramView has the viewpoint of the program. The type is followed by nine little-endian 32-bit numbers (IEEE
	// 754): position x, y, z in metres and orientation x, y, z, w in the room's coordinates, the vertical field of view
	// in degrees, and the aspect ratio (width by height).
	datagramView = 16
	// datagramScene has the pose of the published object: position, orientation and scale as eight such numbers. Two
	// unsigned 32-bit numbers follow: the first tile whose box follows and the number of boxes. Each box has six
	// numbers: its minimum and its maximum corner in the object's coordinates.
	datagramScene = 17
)

const (
	typeBytes  = 4
	viewBytes  = 9 * 4
	sceneBytes = 8*4 + 2*4
	boxBytes   = 6 * 4
)

// errScene is returned for a malformed datagram about the scene.
var errScene = errors.New("malformed scene datagram")

// Scene collects the connector's tile boxes, which may arrive in several datagrams.
type Scene struct {
	boxes []volumetric.BoundingBox
	known []bool
}

// NewScene returns the scene of an object with the given number of tiles, without boxes.
func NewScene(tiles int) *Scene {
	return &Scene{boxes: make([]volumetric.BoundingBox, tiles), known: make([]bool, tiles)}
}

// isScene reports whether a datagram is about the scene.
func (s *Scene) isScene(datagram []byte) bool {
	if len(datagram) < typeBytes {
		return false
	}
	kind := binary.LittleEndian.Uint32(datagram)
	return kind == datagramView || kind == datagramScene
}

// placed is the pose of the connector's object with the boxes of some of its tiles, from tile first on.
type placed struct {
	pose  *signal.Pose
	first int
}

// read parses a datagram about the scene: a viewpoint or a pose. Errors wrap errScene or are those of validation.
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
			boxes[i].Min[axis] = float32(number(rest[i*boxBytes+4*axis:]))
			boxes[i].Max[axis] = float32(number(rest[i*boxBytes+12+4*axis:]))
		}
	}
	p := &signal.Pose{Publication: publication, Position: vector(body), Orientation: rotation(body[12:]),
		Scale: number(body[28:]), Boxes: boxes}
	return nil, &placed{p, int(first)}, p.Validate()
}

// place stores the boxes of a pose. place returns the pose with the boxes of all tiles, or without boxes until all are
// known.
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

// publication is the name in a pose during validation. The connector does not name its publication, because it has only
// one.
const publication = "body"

func number(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) }

func vector(b []byte) [3]float64 { return [3]float64{number(b), number(b[4:]), number(b[8:])} }

func rotation(b []byte) signal.Rotation {
	return signal.Rotation{number(b), number(b[4:]), number(b[8:]), number(b[12:])}
}
