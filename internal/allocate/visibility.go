package allocate

import (
	"math"
)

const (
	// unseenWeight is the value of a tile that cannot be seen, as a share of the view: a fifth of a fingernail at arm's
	// length. unseenWeight only decides which tile gets bits that no visible tile can use.
	unseenWeight = 1e-5
	// unknownWeight is the sum of the values of an object's tiles if their boxes are unknown. A person two metres away
	// covers a tenth of a headset's view.
	unknownWeight = 0.1
	// equalWeight is the value of each tile without a viewpoint.
	equalWeight = 1
)

// visibility describes a tile from a receiver's viewpoint.
type visibility struct {
	// weight is the value of the tile at full quality, as a share of the view.
	weight float64
	// pixels is the number of pixels that the whole box covers, inside the view or not; 0 is unknown.
	pixels float64
	// seen is false if no part of the tile is in the view or its margin.
	seen bool
	// beyond is the angle in radians between the edge of the view and the tile, 0 if a part of the tile is in the view.
	// For the back of a picture beyond is the largest possible angle.
	beyond float64
	// edge is set if a part of the tile is outside the view. The value of the tile then changes with small motions of
	// the viewpoint.
	edge bool
	// center is the middle of the tile's box.
	center vector
}

// viewer evaluates the tiles of one object after the other from one viewpoint.
type viewer struct {
	cfg     *ViewConfig
	frustum frustum
	present bool // the viewpoint is usable
	placed  bool // the object's pose is usable
	stand   placement
	middle  vector // of the object's boxes
	extent  float64
}

func newViewer(cfg *ViewConfig, v *Viewpoint) viewer {
	o := viewer{cfg: cfg}
	if v != nil {
		o.frustum, o.present = newFrustum(v)
	}
	return o
}

// turnTo selects an object.
func (o *viewer) turnTo(object *Object) {
	if !o.present {
		return
	}
	o.stand, o.placed = o.frustum.place(&object.Pose)
	var low, high vector
	known := false
	for i := range object.Tiles {
		b, ok := newBox(&object.Tiles[i].Box)
		if !ok {
			continue
		}
		far := b.low.plus(b.size)
		if !known {
			known, low, high = true, b.low, far
		}
		for axis := range 3 {
			low[axis], high[axis] = min(low[axis], b.low[axis]), max(high[axis], far[axis])
		}
	}
	o.middle = low.mix(high, 0.5)
	o.extent = high.minus(low).length()
}

// look evaluates one tile of the selected object.
func (o *viewer) look(object *Object, tile *Tile) visibility {
	priority := object.Priority
	if !(priority > 0 && priority <= 1e6) {
		priority = 1
	}
	if !o.present {
		return visibility{weight: priority * equalWeight, seen: true}
	}
	b, known := newBox(&tile.Box)
	if !known || !o.placed {
		return visibility{weight: priority * unknownWeight / float64(len(object.Tiles)), seen: true, center: o.middle}
	}
	center := b.center()
	if object.Picture != PictureNone && o.stand.eye[2] <= center[2] {
		return visibility{weight: priority * unseenWeight, beyond: math.Pi, edge: true, center: center}
	}
	inView, entire := o.frustum.area(&o.stand, &b)
	area, beyond, whole := inView, 0.0, o.frustum.silhouette(&o.stand, &b)
	if !entire {
		beyond = o.frustum.beyond(&o.stand, &b)
		area += o.margin(beyond) * max(whole-inView, 0)
	}
	return visibility{
		weight: priority * (unseenWeight + area*o.nearSide(center)),
		pixels: whole * o.cfg.Pixels,
		seen:   inView > 0 || beyond <= o.cfg.EdgeDegrees*math.Pi/180,
		beyond: beyond,
		edge:   !entire,
		center: center,
	}
}

// margin returns the value at an angle beyond the edge of the view, relative to the value inside.
//
// It falls to 1/e with every EdgeDegrees, without a step: otherwise small motions of the viewpoint would switch tiles
// off and on. At 30° with a margin of 10° it is a hundredth of the value inside; behind the viewer it is less than
// unseenWeight.
func (o *viewer) margin(beyond float64) float64 {
	if o.cfg.EdgeDegrees == 0 {
		return 0
	}
	return o.cfg.EdgeShare * math.Exp(-beyond*180/math.Pi/o.cfg.EdgeDegrees)
}

// nearSide is 1 for a tile on the near side of its object, and falls to HiddenShare for a tile straight behind its
// axis.
//
// People and the things they hold are opaque and hide most of the tiles behind them. Boxes do not show how much. The
// measure is the angle between the directions from the object's vertical axis to the tile and from the tile to the eye,
// seen from above: the front of the feet is as much a front as that of the head, and from above nothing is hidden.
func (o *viewer) nearSide(center vector) float64 {
	offset := center.minus(o.middle)
	offset[1] = 0
	distance := offset.length()
	toEye := o.stand.eye.minus(center)
	if distance < 1e-3*o.extent || toEye.length() == 0 {
		return 1
	}
	side := offset.dot(toEye) / (distance * toEye.length())
	return 1 + (1-o.cfg.HiddenShare)*min(side, 0)
}

// facing is VR2Gather's criterion for the order of tiles: the cosine between the directions from the object's middle to
// the eye and to the tile, 0 if unknown.
func (o *viewer) facing(center vector) float64 {
	if !o.present || !o.placed {
		return 0
	}
	offset, toEye := center.minus(o.middle), o.stand.eye.minus(o.middle)
	product := offset.length() * toEye.length()
	if offset.length() < 1e-3*o.extent || product == 0 {
		return 0
	}
	return offset.dot(toEye) / product
}
