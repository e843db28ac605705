package synthetic

import "math"

// solid is one rounded shape: an ellipsoid, or the hull of two balls (a round cone), possibly
// flattened. In its own frame the first axis is the axis of a cone.
type solid struct {
	bone     bone
	material material
	blend    float64 // metres over which the solid blends with earlier solids of its group
	origin   vector
	axes     [3]vector
	scale    vector  // reciprocal radii of an ellipsoid; for a cone, reciprocal factors of its width
	thinnest float64 // smallest of these radii or factors
	widest   float64 // largest of these radii or factors
	length   float64
	r0, r1   float64 // a cone's radii; 0 marks an ellipsoid
}

// distance returns the signed distance, negative inside. For ellipsoids it is the first-order
// estimate of Quilez ("distance functions", 2008), exact at the surface; for flattened cones it is
// a lower bound.
func (s *solid) distance(p vector) float64 {
	p = p.sub(s.origin)
	local := vector{s.axes[0].dot(p), s.axes[1].dot(p), s.axes[2].dot(p)}
	local = local.times(s.scale)
	if s.r0 == 0 {
		k0 := local.length()
		k1 := local.times(s.scale).length()
		if k1 == 0 {
			return -s.thinnest
		}
		return k0 * (k0 - 1) / k1
	}
	return roundCone(local, s.length, s.r0, s.r1) * s.thinnest
}

// roundCone returns the distance from the hull of a ball of radius r0 at the origin and a ball of
// radius r1 on the first axis.
func roundCone(p vector, length, r0, r1 float64) float64 {
	slope := (r0 - r1) / length
	rise := math.Sqrt(1 - slope*slope)
	across := math.Sqrt(p[1]*p[1] + p[2]*p[2])
	switch k := p[0]*rise - across*slope; {
	case k < 0:
		return p.length() - r0
	case k > rise*length:
		return math.Sqrt(across*across+(p[0]-length)*(p[0]-length)) - r1
	}
	return across*rise + p[0]*slope - r0
}

// bounds returns a ball around the solid.
func (s *solid) bounds() (centre vector, radius float64) {
	if s.r0 == 0 {
		return s.origin, s.widest
	}
	return s.origin.add(s.axes[0].scale(s.length / 2)), s.length/2 + max(s.r0, s.r1)*max(s.widest, 1)
}

// group contains solids that blend with each other: the skin of the head, a shirt, a hand.
type group struct {
	solids []*solid
	carved []*solid               // subtracted, with their blend
	cut    func(p vector) float64 // positive values are subtracted, too; nil subtracts nothing
	soft   float64                // blend of the cut
}

// distance also returns the index of the nearest solid, -1 if there is none.
func (g *group) distance(p vector) (float64, int) {
	d, nearest, owner := math.Inf(1), math.Inf(1), -1
	for i, s := range g.solids {
		own := s.distance(p)
		if own < nearest {
			nearest, owner = own, i
		}
		d = smoothMin(d, own, s.blend)
	}
	for _, s := range g.carved {
		d = -smoothMin(-d, s.distance(p), s.blend)
	}
	if g.cut != nil && owner >= 0 {
		d = -smoothMin(-d, -g.cut(p), g.soft)
	}
	return d, owner
}

// smoothMin is the polynomial smooth minimum: it differs from the minimum only if both values are
// closer than k.
func smoothMin(a, b, k float64) float64 {
	if k <= 0 || math.Abs(a-b) >= k {
		return min(a, b)
	}
	h := k - math.Abs(a-b)
	return min(a, b) - h*h/(4*k)
}

// field is the whole body, or the part of it near a position.
type field []group

func (f field) distance(p vector) (float64, *solid) {
	best, owner := math.Inf(1), (*solid)(nil)
	for i := range f {
		if d, nearest := f[i].distance(p); d < best {
			best, owner = d, f[i].solids[nearest]
		}
	}
	return best, owner
}

// gradient uses four surrounding points (a tetrahedron), which takes two evaluations less than
// differences along the axes.
func (f field) gradient(p vector) vector {
	const step = 5e-4
	var g vector
	for _, corner := range [4]vector{{1, -1, -1}, {-1, -1, 1}, {-1, 1, -1}, {1, 1, 1}} {
		d, _ := f.distance(p.add(corner.scale(step)))
		g = g.add(corner.scale(d))
	}
	return g.scale(1 / (4 * step))
}

// near returns the field within a ball, without solids that are too far away to blend with any
// other there.
func (f field) near(centre vector, radius float64) field {
	var out field
	for _, g := range f {
		blend := 0.0
		for _, s := range g.solids {
			blend = max(blend, s.blend)
		}
		kept := group{cut: g.cut, soft: g.soft, solids: within(g.solids, centre, radius+blend)}
		if len(kept.solids) > 0 {
			kept.carved = within(g.carved, centre, radius+blend)
			out = append(out, kept)
		}
	}
	return out
}

// within returns the solids whose distance at the centre is below reach.
func within(solids []*solid, centre vector, reach float64) []*solid {
	var out []*solid
	for _, s := range solids {
		middle, extent := s.bounds()
		away := reach
		if s.r0 > 0 && s.thinnest < 1 {
			away /= s.thinnest // a flattened cone reports less than its true distance by up to this factor
		}
		if middle.sub(centre).length() < extent+away {
			out = append(out, s)
		}
	}
	return out
}
