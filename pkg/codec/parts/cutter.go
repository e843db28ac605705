package parts

import (
	"slices"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// sampled is the number of points from which the cuts are computed. The size of a part is then
// accurate to about 1/sqrt(1024) = 3 % of the cloud.
const sampled = 1024

// cutter divides clouds into slabs.
type cutter struct {
	sample [sampled][3]float32
	values [sampled]float32
}

// cut assigns to each part the points of its slab, in memory of the parts.
func (c *cutter) cut(cloud *pointcloud.Cloud, parts []*part, plain bool) {
	var cuts [MaxParts - 1]float32
	axis := c.findCuts(cloud, cuts[:len(parts)-1])
	for _, p := range parts {
		p.slab.Reset()
	}
	for i, position := range cloud.Positions {
		at := 0
		// There are few cuts: counting the cuts below the point has no branch to mispredict.
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

// findCuts returns the longest axis of the cloud and computes the cuts along this axis.
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
