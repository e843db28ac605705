package pointcloud

import "github.com/volsfu/volsfu/pkg/volumetric"

// learnt are the boxes of tiles that have none by their definition: those around their points in the first frame.
type learnt struct {
	whole volumetric.BoundingBox
	boxes []volumetric.BoundingBox // nil before the first frame with points
}

// boxMargin is by which part of the object's longest edge the boxes are larger than the tiles of the first frame: 18 cm for a standing person,
// who sways by a few centimetres and moves arms further.
const boxMargin = 0.1

// done tells whether a frame was learnt.
func (l *learnt) done() bool { return l.boxes != nil }

// learn takes the first frame, whose points are in the tiles that by tells.
func (l *learnt) learn(src *Cloud, tiles int, by assigner) {
	found := make([]Cloud, tiles)
	var points partition
	points.classify(src, tiles, by)
	points.scatter(found)
	margin := float32(0)
	for axis := range 3 {
		margin = max(margin, boxMargin*(l.whole.Max[axis]-l.whole.Min[axis]))
	}
	l.boxes = make([]volumetric.BoundingBox, tiles)
	for i := range l.boxes {
		l.boxes[i] = l.whole
		if found[i].Len() == 0 {
			continue
		}
		box := found[i].Bounds()
		for axis := range 3 {
			low, high := l.whole.Min[axis], l.whole.Max[axis]
			l.boxes[i].Min[axis] = min(max(box.Min[axis]-margin, low), high)
			l.boxes[i].Max[axis] = max(min(box.Max[axis]+margin, high), low)
		}
	}
}

// box is the box of a tile.
func (l *learnt) box(tile int) volumetric.BoundingBox {
	if !l.done() {
		return l.whole
	}
	return l.boxes[tile]
}
