package parts

import (
	"slices"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// sampled is how many points the cuts are found from: the share of a part is then right within
// about 1/sqrt(1024) = 3 % of the cloud.
const sampled = 1024

// cutter cuts clouds into slabs.
type cutter struct {
	sample [sampled][3]float32
	values [sampled]float32
}

// cut gives every part the points of its slab, in memory that the parts keep.
func (c *cutter) cut(cloud *pointcloud.Cloud, parts []*part, plain bool) {
	var cuts [MaxParts - 1]float32
	axis := c.findCuts(cloud, cuts[:len(parts)-1])
	for _, p := range parts {
		p.slab.Reset()
	}
	for i, position := range cloud.Positions {
		at := 0
		// Few cuts: counting those below the point has no branch to mispredict.
		for _, cut := range cuts[:len(parts)-1] {
			if position[axis] > cut {
				at++
			}
		}
		into := &parts[at].slab
		into.Positions = append(into.Positions, position)
		if !plain {
			into.Colors = append(into.Colors, cloud.Colors[i])
		}
	}
	for _, p := range parts {
		p.cloud = p.slab
	}
}

// findCuts finds the longest axis of the cloud, and where to cut it.
func (c *cutter) findCuts(cloud *pointcloud.Cloud, cuts []float32) (axis int) {
	n := min(sampled, cloud.Len())
	for i := range n {
		c.sample[i] = cloud.Positions[i*cloud.Len()/n]
	}
	view := pointcloud.Cloud{Positions: c.sample[:n]}
	box := view.Bounds()
	for a := range box.Max {
		if box.Max[a]-box.Min[a] > box.Max[axis]-box.Min[axis] {
			axis = a
		}
	}
	for i, position := range c.sample[:n] {
		c.values[i] = position[axis]
	}
	slices.Sort(c.values[:n])
	for i := range cuts {
		cuts[i] = c.values[(i+1)*n/(len(cuts)+1)]
	}
	return axis
}
