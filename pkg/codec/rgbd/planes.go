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
}

// encode appends mask and depths of a grid to dst.
func (c *planeCoder) encode(dst []byte, g *grid) []byte {
	c.model.reset()
	c.encoder.begin(dst)
	c.encodeMask(g)
	last := int32(0)
	for y := range g.rows {
		row := g.row(y)
		for at := row; at < row+g.columns; at++ {
			if g.valid[at] == 0 {
				continue
			}
			prediction, context := g.predict(at, last)
			last = g.codes[at]
			residual := last - prediction
			c.encodeResidual(residual, context, g.signContext(at), g.pattern(at))
			g.residuals[at] = residual
		}
	}
	return c.encoder.end()
}

// encodeMask encodes the kinds of all blocks and then the pixels of mixed blocks, row by row.
func (c *planeCoder) encodeMask(g *grid) {
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
	for y := range g.rows {
		row := g.row(y)
		kinds := g.kinds[(y/blockEdge+1)*(across+1)+1:][:across]
		for bx, kind := range kinds {
			if kind != blockMixed {
				continue
			}
			for at := row + bx*blockEdge; at < row+min(g.columns, (bx+1)*blockEdge); at++ {
				c.encoder.bit(&c.model.pixels[g.maskContext(at)], uint32(g.valid[at]))
			}
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

// encodeResidual encodes the number of bits of a residual's size in unary code, the bits behind the leading one, and
// the sign.
func (c *planeCoder) encodeResidual(residual int32, context, signs, pattern int) {
	value := uint32(size(residual))
	length := bits.Len32(value)
	lengths := &c.model.lengths[context]
	zero := &c.model.zeros[pattern][context]
	if length == 0 {
		c.encoder.bit(zero, 0)
		return
	}
	c.encoder.bit(zero, 1)
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
	negative := uint32(0)
	if residual < 0 {
		negative = 1
	}
	c.encoder.bit(&c.model.signs[signs], negative)
}

// decode reads mask and depths into a grid that was reset to the size of the tile. The mask must have the given number
// of pixels, and the depths must be at most most. Errors wrap codec.ErrMalformed.
func (c *planeCoder) decode(g *grid, data []byte, points int, most int32) error {
	c.model.reset()
	c.decoder.begin(data)
	if found := c.decodeMask(g); c.decoder.beyond || found != points {
		return fmt.Errorf("%w: mask has %d pixels, expected %d", codec.ErrMalformed, found, points)
	}
	last := int32(0)
	for y := range g.rows {
		row := g.row(y)
		for at := row; at < row+g.columns; at++ {
			if g.valid[at] == 0 {
				continue
			}
			prediction, context := g.predict(at, last)
			residual := c.decodeResidual(context, g.signContext(at), g.pattern(at))
			last = prediction + residual
			if last < 0 || last > most {
				return fmt.Errorf("%w: depth of a pixel is %d steps, expected 0 to %d", codec.ErrMalformed, last, most)
			}
			g.codes[at], g.residuals[at] = last, residual
		}
		// A frame must not make the decoder work beyond its data.
		if c.decoder.beyond {
			break
		}
	}
	switch {
	case c.decoder.beyond:
		return fmt.Errorf("%w: depths end after %d bytes, expected more", codec.ErrMalformed, len(data))
	case c.decoder.at < len(data):
		return fmt.Errorf("%w: %d bytes behind the depths, expected none", codec.ErrMalformed, len(data)-c.decoder.at)
	}
	return nil
}

// decodeMask reads the mask and returns the number of pixels with a depth.
func (c *planeCoder) decodeMask(g *grid) int {
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
	points := 0
	for y := range g.rows {
		row := g.row(y)
		kinds := g.kinds[(y/blockEdge+1)*(across+1)+1:][:across]
		for bx, kind := range kinds {
			if kind == blockNone {
				continue
			}
			begin, end := row+bx*blockEdge, row+min(g.columns, (bx+1)*blockEdge)
			if kind == blockAll {
				for at := begin; at < end; at++ {
					g.valid[at] = 1
				}
				points += end - begin
				continue
			}
			for at := begin; at < end; at++ {
				v := c.decoder.bit(&c.model.pixels[g.maskContext(at)])
				g.valid[at] = uint8(v)
				points += int(v)
			}
		}
	}
	return points
}

// decodeResidual reads a residual.
func (c *planeCoder) decodeResidual(context, signs, pattern int) int32 {
	lengths := &c.model.lengths[context]
	if c.decoder.bit(&c.model.zeros[pattern][context]) == 0 {
		return 0
	}
	length := 1
	for length < maxLength && c.decoder.bit(&lengths[length]) != 0 {
		length++
	}
	value := uint32(1)
	if length > 1 {
		mantissas := &c.model.mantissas[context][length]
		first := c.decoder.bit(&mantissas[0])
		value = 2 | first
		if length > 2 {
			value = value<<1 | c.decoder.bit(&mantissas[1+first])
			value = value<<(length-3) | c.decoder.bits(length-3)
		}
	}
	if c.decoder.bit(&c.model.signs[signs]) != 0 {
		return -int32(value)
	}
	return int32(value)
}
