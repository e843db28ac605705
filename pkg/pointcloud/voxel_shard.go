package pointcloud

// shard contains the voxels of a part of a grid's cells.
type shard struct {
	// table is a hash table with open addressing, at most half full.
	table  []entry
	voxels []voxel
	// before contains, while voxels are written, the number of voxels of each shard before the
	// current one.
	before []int
}

// entry maps a cell to a voxel; cell 0 is a free entry.
type entry struct {
	cell uint64
	slot uint32
}

// voxel contains the sums over the points of one cell.
type voxel struct {
	// origin is the first point. Sums of differences to origin keep all digits.
	origin   [3]float32
	position [3]float32
	color    [3]uint32
	count    uint32
	// first is the index of the first point.
	first uint32
	// votes is the lead of label over all other labels; see vote.
	votes          uint32
	label, sources uint16
}

// minTable is the size of a new table.
const minTable = 1024

// hashOf returns a Fibonacci hash (Knuth, The Art of Computer Programming 3, 6.4) with 2^64 over
// the golden ratio. The high bits are well distributed and are mixed into the lower half.
func hashOf(cell uint64) uint64 {
	h := cell * 0x9e3779b97f4a7c15
	return h ^ h>>32
}

// reset removes the voxels and keeps the memory.
func (s *shard) reset() {
	if len(s.table) == 0 {
		s.table = make([]entry, minTable)
	}
	clear(s.table)
	s.voxels = s.voxels[:0]
}

// voxel returns the voxel of a cell. A new voxel starts with the given point.
func (s *shard) voxel(cell, hash uint64, point int, position [3]float32) *voxel {
	e := s.find(cell, hash)
	if e.cell == 0 {
		if 2*(len(s.voxels)+1) > len(s.table) {
			s.grow()
			e = s.find(cell, hash)
		}
		*e = entry{cell, uint32(len(s.voxels))}
		s.voxels = append(s.voxels, voxel{origin: position, first: uint32(point)})
	}
	return &s.voxels[e.slot]
}

// find returns the entry of a cell, or the free entry for the cell.
func (s *shard) find(cell, hash uint64) *entry {
	mask := uint64(len(s.table) - 1)
	at := hash & mask
	for s.table[at].cell != cell && s.table[at].cell != 0 {
		at = (at + 1) & mask
	}
	return &s.table[at]
}

// grow doubles the table.
func (s *shard) grow() {
	old := s.table
	s.table = make([]entry, 2*len(old))
	for _, e := range old {
		if e.cell != 0 {
			*s.find(e.cell, hashOf(e.cell)) = e
		}
	}
}

func (v *voxel) add(p [3]float32, color [3]uint8) {
	for axis := range p {
		v.position[axis] += p[axis] - v.origin[axis]
		v.color[axis] += uint32(color[axis])
	}
	v.count++
}

// vote counts a label by majority vote (Boyer and Moore 1981): the label of more than half of the points remains at the
// end. If no label has that share, the remaining label is that of one of the points.
func (v *voxel) vote(label uint16) {
	switch {
	case v.votes == 0:
		v.label, v.votes = label, 1
	case v.label == label:
		v.votes++
	default:
		v.votes--
	}
}

// write writes the voxel's point to dst.
func (v *voxel) write(dst *Cloud, at int) {
	share := 1 / float32(v.count)
	for axis := range 3 {
		dst.Positions[at][axis] = v.origin[axis] + v.position[axis]*share
		dst.Colors[at][axis] = uint8((v.color[axis] + v.count/2) / v.count)
	}
	if len(dst.Labels) > 0 {
		dst.Labels[at] = v.label
	}
	if len(dst.Sources) > 0 {
		dst.Sources[at] = v.sources
	}
}
