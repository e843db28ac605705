package pointcloud

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// MaxCameras is the maximum number of cameras of a CameraTiling: 8 cameras result in 255 tiles.
const MaxCameras = 8

// CameraTiling divides a cloud by the set of cameras that saw each point, as systems with several
// depth cameras do. Tile n contains the points seen by exactly the cameras whose bits are set in
// n+1; four cameras result in 15 tiles. Many sets never occur, because cameras on opposite sides
// see no common points; their tiles are empty. Points with unknown cameras, or with cameras beyond
// the number, are in the tile of all cameras.
//
// CameraTiling learns boxes from the first frame and therefore belongs to one goroutine.
type CameraTiling struct {
	cameras int
	learnt  learnt
}

// NewCameraTiling returns the tiling for 1 to MaxCameras cameras and an object within the box. The
// error wraps ErrTiling for other numbers and invalid boxes.
func NewCameraTiling(cameras int, box volumetric.BoundingBox) (*CameraTiling, error) {
	if cameras < 1 || cameras > MaxCameras {
		return nil, fmt.Errorf("%w: %d cameras, expected 1 to %d", ErrTiling, cameras, MaxCameras)
	}
	if err := checkBox(box); err != nil {
		return nil, err
	}
	return &CameraTiling{cameras: cameras, learnt: learnt{whole: box}}, nil
}

// Len returns the number of sets of cameras, 2^cameras - 1.
func (t *CameraTiling) Len() int { return 1<<t.cameras - 1 }

// Learn implements Tiler. The first frame must contain the cameras that saw the points.
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

// Tiles returns the tiles with labels such as "cameras 0+2".
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
