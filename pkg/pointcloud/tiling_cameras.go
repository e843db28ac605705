package pointcloud

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// MaxCameras is how many cameras a CameraTiling may tell apart: 8 make 255 tiles.
const MaxCameras = 8

// CameraTiling cuts a cloud by the set of cameras that saw each point, as systems with several depth cameras do: tile n holds what was seen by
// exactly the cameras whose bits are set in n+1, so that four cameras make 15 tiles. Many sets never occur, since cameras at opposite sides
// see nothing in common; their tiles stay empty. Points whose cameras are not known, and those of cameras beyond the number, are in the
// tile of all cameras.
//
// It learns boxes from the first frame, hence belongs to one goroutine.
type CameraTiling struct {
	cameras int
	learnt  learnt
}

// NewCameraTiling makes the tiling for a number of cameras, 1 to MaxCameras, and an object within the box. Other numbers give an error around
// ErrTiling.
func NewCameraTiling(cameras int, box volumetric.BoundingBox) (*CameraTiling, error) {
	if cameras < 1 || cameras > MaxCameras {
		return nil, fmt.Errorf("%w: %d cameras, expected 1 to %d", ErrTiling, cameras, MaxCameras)
	}
	if err := checkBox(box); err != nil {
		return nil, err
	}
	return &CameraTiling{cameras: cameras, learnt: learnt{whole: box}}, nil
}

// Len is the number of sets of cameras, 2^cameras - 1.
func (t *CameraTiling) Len() int { return 1<<t.cameras - 1 }

// Learn implements Tiler. The first frame must tell which cameras saw its points.
func (t *CameraTiling) Learn(src *Cloud) error {
	if t.learnt.done() || src.Len() == 0 {
		return nil
	}
	if len(src.Sources) == 0 {
		return fmt.Errorf("%w: the cloud does not tell which cameras saw its points", ErrTiling)
	}
	t.learnt.learn(src, t.Len(), t)
	return nil
}

// Assign implements Tiler.
func (t *CameraTiling) Assign(src *Cloud, begin int, into []uint8) {
	all := uint16(t.Len())
	if len(src.Sources) == 0 {
		for i := range into {
			into[i] = uint8(all - 1)
		}
		return
	}
	for i, set := range src.Sources[begin : begin+len(into)] {
		if set == 0 || set > all {
			set = all
		}
		into[i] = uint8(set - 1)
	}
}

// Tiles have labels such as "cameras 0+2".
func (t *CameraTiling) Tiles() []volumetric.Tile {
	tiles := make([]volumetric.Tile, t.Len())
	for i := range tiles {
		var names []string
		for camera := range t.cameras {
			if (i+1)>>camera&1 == 1 {
				names = append(names, strconv.Itoa(camera))
			}
		}
		label := "camera " + names[0]
		if len(names) > 1 {
			label = "cameras " + strings.Join(names, "+")
		}
		tiles[i] = volumetric.Tile{Label: label, Box: t.learnt.box(i)}
	}
	return tiles
}
