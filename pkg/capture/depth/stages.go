package depth

import "slices"

// removeBackground copies the depths that belong to the object.
func (p *Projector) removeBackground(thread int) {
	first, end := p.rows(thread)
	width, mask := p.optics.camera.Width, p.optics.background.Mask
	for y := first; y < end; y++ {
		from := p.image.Depth[y*width:][:width]
		object := p.optics.object[y*width:][:len(from)]
		to := p.near[(y+1)*(width+2)+1:][:len(from)]
		for x, d := range from {
			if !object[x].has(d) {
				d = 0
			}
			to[x] = d
		}
		if !mask {
			continue
		}
		for x, label := range p.image.Labels[y*width:][:len(to)] {
			if label == 0 {
				to[x] = 0
			}
		}
	}
}

// cleanRows drops flying pixels and finds the surfaces of a thread's rows. At the border of an
// object a pixel sees front and back together and reports a depth between them.
func (p *Projector) cleanRows(thread int) {
	first, end := p.rows(thread)
	width, joints := p.optics.camera.Width, p.optics.joints
	for y := first; y < end; y++ {
		to := p.object[y*width:][:width]
		above := p.near[y*(width+2):][:width+2]
		here := p.near[(y+1)*(width+2):][:width+2]
		below := p.near[(y+2)*(width+2):][:width+2]
		if p.optics.cleaning.EdgeNeighbors == 0 {
			copy(to, here[1:])
		} else {
			dropMixed(to, above, here, below, joints, p.optics.cleaning.EdgeNeighbors)
		}
		p.surfaces.split(p.object, joints, y)
		if y > first && p.optics.cleaning.MinBlobPixels > 1 {
			p.surfaces.join(p.object, joints, y)
		}
	}
}

// dropMixed copies the pixels of a row that have enough neighbours on their surface. The input rows
// have one more pixel at each end. The neighbours most likely on the surface are tested first, so
// that most pixels need only the minimum number of tests.
func dropMixed(to, above, here, below []uint16, joints []joint, wanted int) {
	above, here, below = above[:len(to)+2], here[:len(to)+2], below[:len(to)+2]
	for x := range to {
		d := here[x+1]
		if d == 0 {
			to[x] = 0
			continue
		}
		j, found := joints[d], 0
		for _, neighbor := range [8]uint16{here[x], here[x+2], above[x+1], below[x+1], above[x], above[x+2], below[x],
			below[x+2]} {
			if j.has(neighbor) {
				if found++; found == wanted {
					break
				}
			}
		}
		if found < wanted {
			d = 0
		}
		to[x] = d
	}
}

// choose joins the surfaces of all threads, drops small surfaces, and sets each thread's first index. choose returns
// the number of points.
func (p *Projector) choose() int {
	smallest := int32(p.optics.cleaning.MinBlobPixels)
	if smallest > 1 {
		for thread := 1; thread < len(p.threads); thread++ {
			first, _ := p.rows(thread)
			p.surfaces.join(p.object, p.optics.joints, first)
		}
		p.surfaces.measure()
	}
	points := 0
	for thread := range p.threads {
		p.starts[thread] = p.into.Len() + points
		first, end := p.rows(thread)
		for y := first; y < end; y++ {
			at, last := p.surfaces.row(y)
			for ; at < last; at++ {
				r := &p.surfaces.runs[at]
				if smallest > 1 && p.surfaces.size(at) < smallest {
					r.end = r.begin
				}
				points += int(r.end - r.begin)
			}
		}
	}
	return points
}

// reserve extends the cloud by a number of points.
func (p *Projector) reserve(points int) {
	c := p.into
	before := c.Len()
	c.Positions = slices.Grow(c.Positions, points)[:before+points]
	c.Colors = slices.Grow(c.Colors, points)[:before+points]
	if len(p.image.Labels) > 0 || len(c.Labels) > 0 {
		c.Labels = extend(c.Labels, before, points)
	}
	if p.source != 0 || len(c.Sources) > 0 {
		c.Sources = extend(c.Sources, before, points)
	}
}

// extend extends an attribute that earlier points may not have.
func extend(values []uint16, before, points int) []uint16 {
	had := len(values)
	values = slices.Grow(values, before+points-had)[:before+points]
	clear(values[had:])
	return values
}

// unknownColor is the colour of points without colour.
var unknownColor = [3]uint8{200, 200, 200}

// placePoints writes the points of a thread.
func (p *Projector) placePoints(thread int) {
	first, end := p.rows(thread)
	to, at, c := p.starts[thread], p.optics.origin, p.into
	for y := first; y < end; y++ {
		r, last := p.surfaces.row(y)
		for ; r < last; r++ {
			begin, end := int(p.surfaces.runs[r].begin), int(p.surfaces.runs[r].end)
			n := end - begin
			rays, depths, positions := p.optics.rays[begin:end], p.object[begin:end], c.Positions[to:to+n]
			for i, ray := range rays {
				d := float32(depths[i])
				positions[i] = [3]float32{at[0] + ray[0]*d, at[1] + ray[1]*d, at[2] + ray[2]*d}
			}
			if len(p.image.Colors) > 0 {
				copy(c.Colors[to:], p.image.Colors[begin:end])
			} else {
				fill(c.Colors[to:to+n], unknownColor)
			}
			if len(p.image.Labels) > 0 {
				copy(c.Labels[to:], p.image.Labels[begin:end])
			}
			if p.source != 0 {
				fill(c.Sources[to:to+n], p.source)
			}
			to += n
		}
	}
}

func fill[T any](values []T, value T) {
	for i := range values {
		values[i] = value
	}
}
