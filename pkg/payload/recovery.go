package payload

import "github.com/klauspost/reedsolomon"

// recoverBlock computes the missing source shards of one block. At least as many shards must have
// arrived as the block has source shards. shard returns the memory of a fragment and reports
// whether the fragment arrived. recoverBlock writes to the memory of missing source fragments; the
// memory of missing parity fragments may be nil.
//
// For m missing shards, m parity shards are m equations. The received shards are eliminated first,
// with one pass over each shard for each equation. A square part of the Cauchy matrix remains, and
// every square part of a Cauchy matrix is invertible. The effort follows the number of losses: a
// frame of 131 fragments with 5 losses takes 0.2 ms in total. The library needs 1.2 ms, because it
// inverts a matrix of 131 by 131 for each new pattern of losses.
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

// reduce writes the equation of one parity shard to the memory of each missing shard, with the
// received shards eliminated.
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

// solve computes the missing shards from the equations in their memory, by Gauss–Jordan
// elimination. No leading part of a Cauchy matrix is singular, so that rows need not be exchanged.
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
