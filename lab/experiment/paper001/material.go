package paper001

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/volsfu/volsfu/lab/experiment"
)

// framePoints is the number of points of a frame, as in the paper (section 4.2).
const framePoints = 200_000

// Names of the contents. contentFigure replaces the others if there is no test data.
const (
	contentMan    = "cesium-man"
	contentDesk   = "desk-human"
	contentFigure = "synthetic"
)

// occupied is the number of occupied cells of an octree of each depth, over a cube around the object, for the points of
// a frame. A codec that keeps one point per cell, such as the paper's MPEG anchor codec, keeps this number of points.
var occupied = map[string]map[int]int{
	contentMan:    {5: 944, 7: 14_606, 9: 127_564},
	contentDesk:   {5: 500, 7: 6_594, 9: 82_331},
	contentFigure: {5: 793, 7: 12_569, 9: 132_863},
}

// material is the captured content and the qualities of its levels.
type material struct {
	content string
	source  string
}

// materialFor returns the content, or its replacement with a note.
func materialFor(content string, s *experiment.Settings, o *experiment.Outcome) material {
	kind, file := "glb:", filepath.Join(s.Data, "cesium-man", "CesiumMan.glb")
	if content == contentDesk {
		kind, file = "ply:", filepath.Join(s.Data, "desk-human")
	}
	if _, err := os.Stat(file); s.Data == "" || err != nil {
		o.Note("The synthetic figure replaces %s: %d points per frame.", content, framePoints)
		return material{contentFigure, "synthetic"}
	}
	if content == contentDesk {
		o.Note("desk-human is one captured frame of %d points, shown repeatedly.", framePoints)
	} else {
		o.Note("cesium-man is a walking figure in a loop of 2 s, its surface sampled at %d points in random order.",
			framePoints)
	}
	return material{content, kind + file}
}

// rung returns the quality of a level: the number of points of the level's octree, with as many bits per coordinate as
// the octree is deep.
func (m material) rung(level int, o *experiment.Outcome) string {
	points := occupied[m.content][level]
	o.Note("Octree level %d is the rung octree%d: %d points of %s, positions at %d bits, Draco at speed 10.", level,
		level, points, m.content, level)
	return fmt.Sprintf("octree%d=%d:%d", level, points, level)
}

// flags returns the flags of vollab peer for the material.
func (m material) flags(tiles int, qualities string, seed uint64) []string {
	return []string{
		"--source", m.source, "--points", fmt.Sprint(framePoints), "--seed", fmt.Sprint(seed % (1 << 31)),
		"--tiling", "direction", "--tiles", fmt.Sprint(tiles), "--qualities", qualities, "--codec", "draco",
	}
}
