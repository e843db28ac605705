package allocate

import (
	"math"
)

const (
	// unseenWeight is what a tile that cannot be seen is worth, in shares of the view: a fifth of a fingernail at arm's length. It decides who gets what
	// nobody else can use, and nothing besides.
	unseenWeight = 1e-5
	// unknownWeight is shared by the tiles of an object whose boxes are unknown. A person two metres away covers a tenth of a headset's view.
	unknownWeight = 0.1
	// equalWeight is every tile's where there is no viewpoint.
	equalWeight = 1
)

// visibility is how a receiver sees a tile.
type visibility struct {
	// weight is what the tile is worth at full quality, in shares of the view.
	weight float64
	// pixels is what the whole box covers, inside the view or not; 0 is unknown.
	pixels float64
	// seen is false where nothing of the tile is in the view or its margin.
	seen bool
	// beyond is the angle in radians between the edge of the view and the tile, 0 where the view has some of it.
	beyond float64
	// edge is set where the view does not hold all of the tile, whose worth then changes with every tremble of the viewpoint.
	edge bool
	// center is the middle of the tile's box.
	center vector
}

// viewer sees the tiles of one object after the other from one viewpoint.
type viewer struct {
	cfg     *ViewConfig
	frustum frustum
	present bool // there is a usable viewpoint
	placed  bool // the object has a usable pose
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

// turnTo looks at an object.
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

// look sees one tile of that object.
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
	inView, entire := o.frustum.area(&o.stand, &b)
	area, beyond, whole := inView, 0.0, o.frustum.silhouette(&o.stand, &b)
	if !entire {
		beyond = o.frustum.beyond(&o.stand, &b)
		area += o.margin(beyond) * max(whole-inView, 0)
	}
	center := b.center()
	return visibility{
		weight: priority * (unseenWeight + area*o.nearSide(center)),
		pixels: whole * o.cfg.Pixels,
		seen:   inView > 0 || beyond <= o.cfg.EdgeDegrees*math.Pi/180,
		beyond: beyond,
		edge:   !entire,
		center: center,
	}
}

// margin is the worth of what is so far beyond the edge of the view as a share of what is inside.
//
// It falls to 1/e with every margin, and nowhere at once: a viewpoint that trembles would switch tiles off and on. At 30° with a margin of 10° it is a
// hundredth of what is inside, and what is behind the viewer is worth less than unseenWeight.
func (o *viewer) margin(beyond float64) float64 {
	if o.cfg.EdgeDegrees == 0 {
		return 0
	}
	return o.cfg.EdgeShare * math.Exp(-beyond*180/math.Pi/o.cfg.EdgeDegrees)
}

// nearSide is 1 for a tile on the near side of its object, and falls to HiddenShare for one straight behind its axis.
//
// People and what they hold are opaque: of what is behind them little is seen. Boxes do not tell how much. What counts is where the tile lies from the
// object's vertical axis against where the eye is, both seen from above: the feet's front is as much a front as the head's, and from above nothing hides.
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

// facing is what VR2Gather orders tiles by: the cosine between the directions from the object's middle to the eye and to the tile, 0 where unknown.
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
