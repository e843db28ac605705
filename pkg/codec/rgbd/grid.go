package rgbd

import "slices"

// grid is the raster of a tile while it is coded: depth codes, with a border that has no depth, so that every pixel has
// all neighbours of the contexts.
type grid struct {
	columns, rows int
	// stride is the distance of two rows, first the index of the first pixel.
	stride, first int
	// valid is 1 for pixels with a depth, and codes the depths in steps from the nearest. Both are 0 for other pixels.
	valid []uint8
	codes []int32
	// kinds contains the kind of each block, with a border of empty blocks to the left and above.
	kinds []uint8
}

const (
	// blockEdge is the edge of a block of the mask in pixels.
	blockEdge = 8
	// borderColumns and borderRows are the border that the contexts of a mask need.
	borderColumns = 2
	borderRows    = 2
	// mostCode is the largest depth code.
	mostCode = 1<<16 - 1
)

// The kinds of blocks.
const (
	blockNone = iota
	blockAll
	blockMixed
	blockKinds
)

// reset makes the grid an empty raster of the given size.
func (g *grid) reset(columns, rows int) {
	g.columns, g.rows = columns, rows
	g.stride = columns + 2*borderColumns
	g.first = borderRows*g.stride + borderColumns
	size := g.stride * (rows + borderRows)
	g.valid = zeroed(g.valid, size)
	g.codes = zeroed(g.codes, size)
	across, down := g.blocks()
	g.kinds = zeroed(g.kinds, (across+1)*(down+1))
}

// zeroed returns a slice of zeros that reuses memory.
func zeroed[T any](s []T, size int) []T {
	s = slices.Grow(s[:0], size)[:size]
	clear(s)
	return s
}

// blocks returns the number of blocks in both directions.
func (g *grid) blocks() (across, down int) {
	return (g.columns + blockEdge - 1) / blockEdge, (g.rows + blockEdge - 1) / blockEdge
}

// row returns the index of the first pixel of a row.
func (g *grid) row(y int) int { return g.first + y*g.stride }

// kindsOf returns the kinds of the blocks of a row of pixels.
func (g *grid) kindsOf(y int) []uint8 {
	across, _ := g.blocks()
	return g.kinds[(y/blockEdge+1)*(across+1)+1:][:across]
}

// maskRows returns the mask of a row and of the two rows above, with the border on both sides.
func (g *grid) maskRows(y int) (valid, above, top []uint8) {
	begin, n := g.row(y)-borderColumns, g.columns+2*borderColumns
	return g.valid[begin:][:n], g.valid[begin-g.stride:][:n], g.valid[begin-2*g.stride:][:n]
}

// firstGroups returns the groups of a mask's context before the pixel of a column: without the pixels NEE and NNE,
// which the loop over the row adds.
func firstGroups(valid, above, top []uint8, x int) (west, north, second uint32) {
	west = uint32(valid[x])<<1 | uint32(valid[x+1])
	north = uint32(above[x])<<3 | uint32(above[x+1])<<2 | uint32(above[x+2])<<1 | uint32(above[x+3])
	second = uint32(top[x+1])<<1 | uint32(top[x+2])
	return west, north, second
}
