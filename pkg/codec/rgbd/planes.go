package rgbd

import (
	"fmt"
	"math/bits"

	"github.com/volsfu/volsfu/pkg/codec"
)

// planeCoder codes the mask and the depths of a tile.
type planeCoder struct {
	model   model
	encoder rangeEncoder
	decoder rangeDecoder
	// marks contains the marks of the present row and of the one above, by the parity of the row, with one more mark on
	// both sides.
	marks [2][]mark
}

// begin prepares for a tile.
func (c *planeCoder) begin(g *grid) {
	c.model = *freshModel
	for i := range c.marks {
		c.marks[i] = zeroed(c.marks[i], g.columns+2)
	}
}

// encode appends mask and depths of a grid to dst.
func (c *planeCoder) encode(dst []byte, g *grid) []byte {
	c.begin(g)
	c.encoder.begin(dst)
	c.encodeKinds(g)
	c.encodeMask(g)
	last := int32(0)
	for y := range g.rows {
		last = c.encodeRow(g, y, last)
	}
	return c.encoder.end()
}

// encodeKinds encodes the kinds of all blocks.
func (c *planeCoder) encodeKinds(g *grid) {
	across, down := g.blocks()
	for by := range down {
		for bx := range across {
			at := (by+1)*(across+1) + bx + 1
			context := blockKinds*int(g.kinds[at-1]) + int(g.kinds[at-across-1])
			kind := g.kindOf(bx, by)
			g.kinds[at] = kind
			if kind == blockMixed {
				c.encoder.bit(&c.model.mixed[context], 1)
				continue
			}
			c.encoder.bit(&c.model.mixed[context], 0)
			c.encoder.bit(&c.model.all[context], uint32(kind))
		}
	}
}

// kindOf returns the kind of a block.
func (g *grid) kindOf(bx, by int) uint8 {
	count, pixels := 0, 0
	for y := by * blockEdge; y < min(g.rows, (by+1)*blockEdge); y++ {
		row := g.row(y)
		for _, v := range g.valid[row+bx*blockEdge : row+min(g.columns, (bx+1)*blockEdge)] {
			count += int(v)
			pixels++
		}
	}
	switch count {
	case 0:
		return blockNone
	case pixels:
		return blockAll
	}
	return blockMixed
}

// encodeMask encodes the pixels of mixed blocks, row by row.
func (c *planeCoder) encodeMask(g *grid) {
	for y := range g.rows {
		for bx, kind := range g.kindsOf(y) {
			if kind != blockMixed {
				continue
			}
			begin, end := bx*blockEdge, min(g.columns, (bx+1)*blockEdge)
			valid, above, top := g.maskRows(y)
			west, north, second := firstGroups(valid, above, top, begin)
			for x := begin; x < end; x++ {
				north = north<<1 | uint32(above[x+2*borderColumns])
				second = second<<1 | uint32(top[x+borderColumns+1])
				v := uint32(valid[x+borderColumns])
				c.encoder.bit(&c.model.pixels[maskContext(west, north, second)], v)
				west = west<<1 | v
			}
		}
	}
}

// encodeRow encodes the depths of a row. last is the code of the pixel coded before.
func (c *planeCoder) encodeRow(g *grid, y int, last int32) int32 {
	row, n := g.row(y), g.columns+2
	codes, up := g.codes[row-1:][:n], g.codes[row-1-g.stride:][:n]
	valid := g.valid[row-1:][:n]
	marks, over := c.marks[y&1][:n], c.marks[y&1^1][:n]
	clear(marks)
	for bx, kind := range g.kindsOf(y) {
		if kind == blockNone {
			continue
		}
		begin, end := bx*blockEdge, min(g.columns, (bx+1)*blockEdge)
		west, corner, north := codes[begin], up[begin], up[begin+1]
		westMark, cornerMark, northMark := marks[begin], over[begin], over[begin+1]
		for x := begin; x < end; x++ {
			right, rightMark := up[x+2], over[x+2]
			if valid[x+1] == 0 {
				west, westMark = 0, 0
			} else {
				prediction := median(west, north, corner)
				if westMark&northMark&cornerMark&markDepth == 0 {
					prediction = edgePrediction([4]int32{west, north, right, corner},
						[4]mark{westMark, northMark, rightMark, cornerMark}, last)
				}
				last = codes[x+1]
				residual := last - prediction
				c.encodeResidual(residual, contextOf(westMark, northMark, cornerMark, rightMark),
					signsOf(westMark, northMark), patternOf(west, north, corner, right))
				west, westMark = last, markOf(residual)
				marks[x+1] = westMark
			}
			corner, cornerMark, north, northMark = north, northMark, right, rightMark
		}
	}
	return last
}

// encodeResidual encodes the number of bits of a residual's size in unary code, the bits behind the leading one, and
// the sign.
func (c *planeCoder) encodeResidual(residual int32, context uint32, signs mark, pattern uint32) {
	p := &c.model.zeros[pattern][context]
	if residual == 0 {
		c.encoder.bit(p, 0)
		return
	}
	value := uint32(max(residual, -residual))
	length := bits.Len32(value)
	lengths := &c.model.lengths[context]
	c.encoder.bit(p, 1)
	for i := 1; i < length; i++ {
		c.encoder.bit(&lengths[i], 1)
	}
	if length < maxLength {
		c.encoder.bit(&lengths[length], 0)
	}
	if length > 1 {
		mantissas := &c.model.mantissas[context][length]
		first := value >> (length - 2) & 1
		c.encoder.bit(&mantissas[0], first)
		if length > 2 {
			c.encoder.bit(&mantissas[1+first], value>>(length-3)&1)
			c.encoder.bits(value, length-3)
		}
	}
	c.encoder.bit(&c.model.signs[signs], uint32(residual)>>31)
}

// decode reads mask and depths into a grid that was reset to the size of the tile. The mask must have the given number
// of pixels, and the depths must be at most most. Errors wrap codec.ErrMalformed.
func (c *planeCoder) decode(g *grid, data []byte, points int, most int32) error {
	c.begin(g)
	d := &c.decoder
	d.begin(data)
	c.decodeKinds(g)
	if found := c.decodeMask(g); d.beyond() || found != points {
		return fmt.Errorf("%w: mask has %d pixels, expected %d", codec.ErrMalformed, found, points)
	}
	last, ok := int32(0), false
	// A frame must not make the decoder work beyond its data.
	for y := 0; y < g.rows && !d.beyond(); y++ {
		if last, ok = c.decodeRow(g, y, last, most); !ok {
			return fmt.Errorf("%w: depth of a pixel is %d steps, expected 0 to %d", codec.ErrMalformed, last, most)
		}
	}
	switch {
	case d.beyond():
		return fmt.Errorf("%w: depths end after %d bytes, expected more", codec.ErrMalformed, len(data))
	case d.at < len(data):
		return fmt.Errorf("%w: %d bytes behind the depths, expected none", codec.ErrMalformed, len(data)-d.at)
	}
	return nil
}

// decodeKinds reads the kinds of all blocks.
func (c *planeCoder) decodeKinds(g *grid) {
	across, down := g.blocks()
	for by := range down {
		for bx := range across {
			at := (by+1)*(across+1) + bx + 1
			context := blockKinds*int(g.kinds[at-1]) + int(g.kinds[at-across-1])
			if c.decoder.bit(&c.model.mixed[context]) != 0 {
				g.kinds[at] = blockMixed
			} else {
				g.kinds[at] = uint8(c.decoder.bit(&c.model.all[context]))
			}
		}
	}
}

// decodeMask reads the pixels of mixed blocks and returns the number of pixels with a depth.
func (c *planeCoder) decodeMask(g *grid) (points int) {
	for y := range g.rows {
		valid, above, top := g.maskRows(y)
		for bx, kind := range g.kindsOf(y) {
			if kind == blockNone {
				continue
			}
			begin, end := bx*blockEdge, min(g.columns, (bx+1)*blockEdge)
			if kind == blockAll {
				for x := begin; x < end; x++ {
					valid[x+borderColumns] = 1
				}
				points += end - begin
				continue
			}
			west, north, second := firstGroups(valid, above, top, begin)
			for x := begin; x < end; x++ {
				north = north<<1 | uint32(above[x+2*borderColumns])
				second = second<<1 | uint32(top[x+borderColumns+1])
				v := c.decoder.bit(&c.model.pixels[maskContext(west, north, second)])
				west = west<<1 | v
				valid[x+borderColumns] = uint8(v)
				points += int(v)
			}
		}
	}
	return points
}

// decodeRow reads the depths of a row. last is the code of the pixel coded before. The result is the last code of the
// row, or false and a code that is not within 0 and most. The function contains the decoder of decisions (see
// rangeDecoder) for the unary code, whose decisions are branches anyway, and for the bits behind it, which are
// unpredictable and have no branches.
func (c *planeCoder) decodeRow(g *grid, y int, last, most int32) (int32, bool) {
	row, n := g.row(y), g.columns+2
	codes, up := g.codes[row-1:][:n], g.codes[row-1-g.stride:][:n]
	valid := g.valid[row-1:][:n]
	marks, over := c.marks[y&1][:n], c.marks[y&1^1][:n]
	clear(marks)
	m := &c.model
	code, width, at, data := c.decoder.code, c.decoder.width, c.decoder.at, c.decoder.data
	for bx, kind := range g.kindsOf(y) {
		if kind == blockNone {
			continue
		}
		begin, end := bx*blockEdge, min(g.columns, (bx+1)*blockEdge)
		west, corner, north := codes[begin], up[begin], up[begin+1]
		westMark, cornerMark, northMark := marks[begin], over[begin], over[begin+1]
		for x := begin; x < end; x++ {
			right, rightMark := up[x+2], over[x+2]
			if valid[x+1] == 0 {
				west, westMark = 0, 0
				corner, cornerMark, north, northMark = north, northMark, right, rightMark
				continue
			}
			context := contextOf(westMark, northMark, cornerMark, rightMark)
			p := &m.zeros[patternOf(west, north, corner, right)][context]
			lengths := &m.lengths[context]
			length := 0
			for {
				bound := width >> 16 * p.zero()
				ends := code < bound
				if ends {
					width = bound
					p.sawZero()
				} else {
					code -= bound
					width -= bound
					p.sawOne()
					length++
				}
				for width < leastRange {
					width <<= 8
					code = code<<8 | byteAt(data, at)
					at++
				}
				if ends || length == maxLength {
					break
				}
				p = &lengths[length]
			}
			prediction := median(west, north, corner)
			if westMark&northMark&cornerMark&markDepth == 0 {
				prediction = edgePrediction([4]int32{west, north, right, corner},
					[4]mark{westMark, northMark, rightMark, cornerMark}, last)
			}
			last = prediction
			own := mark(markDepth)
			if length > 0 {
				value := uint32(1)
				behind := min(length-1, 2)
				mantissas := &m.mantissas[context][length]
				p = &mantissas[0]
				for i := 0; ; i++ {
					if i == behind {
						if length > 3 {
							d := &c.decoder
							d.code, d.width, d.at = code, width, at
							value = value<<(length-3) | d.bits(length-3)
							code, width, at = d.code, d.width, d.at
						}
						p = &m.signs[signsOf(westMark, northMark)]
					}
					bound := width >> 16 * p.zero()
					bit := uint32(0)
					if code >= bound {
						bit = 1
					}
					p.see(bit)
					set := -bit
					width = bound ^ (bound^(width-bound))&set
					code -= bound & set
					for width < leastRange {
						width <<= 8
						code = code<<8 | byteAt(data, at)
						at++
					}
					value = value<<1 | bit
					if i == behind {
						break
					}
					p = &mantissas[1+bit]
				}
				residual := int32(value >> 1)
				if value&1 != 0 {
					residual = -residual
				}
				last += residual
				own = markOf(residual)
				if uint32(last) > uint32(most) {
					return last, false
				}
			}
			codes[x+1], marks[x+1] = last, own
			west, westMark = last, own
			corner, cornerMark, north, northMark = north, northMark, right, rightMark
		}
	}
	c.decoder.code, c.decoder.width, c.decoder.at = code, width, at
	return last, true
}
