package pointcloud

import "github.com/volsfu/volsfu/pkg/volumetric"

// learnt contains the boxes of tiles that are not defined by geometry: the boxes around the points in the first frame.
type learnt struct {
	whole volumetric.BoundingBox
	boxes []volumetric.BoundingBox // nil before the first frame with points
}

// boxMargin is the margin of the boxes of the first frame, relative to the object's longest edge:
// 18 cm for a standing person, who sways by a few centimetres and moves arms further.
const boxMargin = 0.1

// done reports whether the boxes were learnt.
func (l *learnt) done() bool { return l.boxes != nil }

// learn computes the boxes from the first frame, of which by assigns the points to tiles.
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

// box returns the box of a tile.
func (l *learnt) box(tile int) volumetric.BoundingBox {
	if !l.done() {
		return l.whole
	}
	return l.boxes[tile]
}
