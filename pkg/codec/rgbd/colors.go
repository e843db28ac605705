package rgbd

import "slices"

const (
	// channels is the number of bytes per pixel of an image.
	channels = 3
	// squareBlocks is the number of blocks across a JPEG MCU with halved chroma. The blocks of the mask are those of
	// luma.
	squareBlocks = 2
)

// painter fills the pixels of an image that have no point.
type painter struct {
	// sums and fill have the blocks of one row of MCUs, row by row, with a whole number of MCUs.
	across int
	sums   []colorSum
	fill   [][channels]uint8
}

// colorSum is a sum of colours.
type colorSum struct{ red, green, blue, count int32 }

func (s *colorSum) mean() [channels]uint8 {
	half := s.count / 2
	return [channels]uint8{uint8((s.red + half) / s.count), uint8((s.green + half) / s.count),
		uint8((s.blue + half) / s.count)}
}

// paint gives the pixels of the grid without a depth colours that cost few bits: the mean of the pixels with a depth of
// their block, or else of their MCU. MCUs without any repeat the MCU before, as JPEG codes differences of means.
func (p *painter) paint(pixels []byte, g *grid) {
	blocks, _ := g.blocks()
	p.across = (blocks + squareBlocks - 1) / squareBlocks * squareBlocks
	last := [channels]uint8{128, 128, 128}
	for top := 0; top < g.rows; top += squareBlocks * blockEdge {
		p.add(pixels, g, top)
		last = p.choose(last)
		p.fillRows(pixels, g, top)
	}
}

// add sums the colours of the pixels with a depth in each block.
func (p *painter) add(pixels []byte, g *grid, top int) {
	p.sums = zeroed(p.sums, squareBlocks*p.across)
	for y := top; y < min(g.rows, top+squareBlocks*blockEdge); y++ {
		sums := p.sums[(y-top)/blockEdge*p.across:]
		line := pixels[channels*y*g.columns:]
		for x, v := range g.valid[g.row(y):][:g.columns] {
			if v == 0 {
				continue
			}
			sum, c := &sums[x/blockEdge], line[channels*x:channels*x+channels]
			sum.red += int32(c[0])
			sum.green += int32(c[1])
			sum.blue += int32(c[2])
			sum.count++
		}
	}
}

// choose sets the colour of each block, and returns that of the last MCU. last is the colour of the MCU before.
func (p *painter) choose(last [channels]uint8) [channels]uint8 {
	p.fill = slices.Grow(p.fill[:0], len(p.sums))[:len(p.sums)]
	for left := 0; left < p.across; left += squareBlocks {
		var all colorSum
		blocks := [squareBlocks * squareBlocks]int{left, left + 1, left + p.across, left + p.across + 1}
		for _, b := range blocks {
			sum := &p.sums[b]
			all = colorSum{all.red + sum.red, all.green + sum.green, all.blue + sum.blue, all.count + sum.count}
		}
		if all.count > 0 {
			last = all.mean()
		}
		for _, b := range blocks {
			p.fill[b] = last
			if p.sums[b].count > 0 {
				p.fill[b] = p.sums[b].mean()
			}
		}
	}
	return last
}

// fillRows fills the pixels without a depth.
func (p *painter) fillRows(pixels []byte, g *grid, top int) {
	for y := top; y < min(g.rows, top+squareBlocks*blockEdge); y++ {
		fill := p.fill[(y-top)/blockEdge*p.across:]
		line := pixels[channels*y*g.columns:]
		for x, v := range g.valid[g.row(y):][:g.columns] {
			if v == 0 {
				copy(line[channels*x:channels*x+channels], fill[x/blockEdge][:])
			}
		}
	}
}
