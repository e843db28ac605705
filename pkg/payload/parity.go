package payload

import (
	"fmt"

	"github.com/klauspost/reedsolomon"
)

const (
	// blockSource is the largest number of source fragments of one parity block. A Reed–Solomon code over GF(2^8) has at most 256 shards, so
	// that a full block has room for 56 parity fragments (28 %).
	blockSource = 200
	// blockTotal is the largest number of fragments of one parity block, source and parity.
	blockTotal = 256
	// maxPackets is the largest number of fragments of a frame, because Index has 16 bits.
	maxPackets = 1 << 16
	// maxCodes bounds the matrices kept by one coder: the blocks of one frame need four at most (two numbers of source fragments times two
	// of parity), two frames of different length eight. The largest matrix has 256 × 200 bytes, hence 400 kB at most.
	maxCodes = 8
)

// MaxParity is the largest number of parity fragments that a frame with so many source fragments can have.
func MaxParity(source int) int {
	return min(blockCount(source)*blockTotal, maxPackets) - source
}

// blockCount is the number of parity blocks of a frame. Fragment i, source or parity, belongs to block i mod blocks, and is shard
// i div blocks of it: a burst of losses spreads over all blocks, and in every block the source shards come first.
func blockCount(source int) int { return (source + blockSource - 1) / blockSource }

// shardsOf is the number of fragments out of the first count that belong to block.
func shardsOf(count, block, blocks int) int { return (count - block + blocks - 1) / blocks }

// codeSize is the number of source and of parity shards of one block.
type codeSize struct{ source, parity int }

// coder makes and keeps the Reed–Solomon codes of one stream. It is empty until the first parity is made or used.
//
// The codes are systematic, with the Cauchy matrix as generator: parity shard r is the sum over the source shards c of c's bytes divided by
// (r xor c) in GF(2^8) with the polynomial 0x11d, where r counts on from the source shards. Hence a parity shard does not depend on how many
// others there are, and a code takes microseconds to make, while the library's default inverts a matrix for each.
type coder struct {
	codes  map[codeSize]reedsolomon.Encoder
	shards [blockTotal][]byte
}

// code returns the code of the given size.
func (c *coder) code(size codeSize) (reedsolomon.Encoder, error) {
	if code, ok := c.codes[size]; ok {
		return code, nil
	}
	// Every pattern of losses is as good as new, so a cache of inverted matrices would only grow. A shard of 1,144 bytes is too little to
	// spread over goroutines.
	code, err := reedsolomon.New(size.source, size.parity, reedsolomon.WithCauchyMatrix(), reedsolomon.WithInversionCache(false),
		reedsolomon.WithMaxGoroutines(1))
	if err != nil {
		return nil, fmt.Errorf("make code of %d source and %d parity shards: %w", size.source, size.parity, err)
	}
	if c.codes == nil || len(c.codes) >= maxCodes {
		c.codes = make(map[codeSize]reedsolomon.Encoder, maxCodes)
	}
	c.codes[size] = code
	return code, nil
}

// encode fills the parity shards of all blocks. shard returns the memory of a fragment, source or parity, FragmentSize bytes each.
func (c *coder) encode(source, parity int, shard func(index int) []byte) error {
	blocks := blockCount(source)
	for block := range blocks {
		size := codeSize{source: shardsOf(source, block, blocks)}
		total := shardsOf(source+parity, block, blocks)
		if size.parity = total - size.source; size.parity == 0 {
			continue
		}
		code, err := c.code(size)
		if err != nil {
			return err
		}
		shards := c.shards[:total]
		for i := range shards {
			shards[i] = shard(block + i*blocks)
		}
		if err := code.Encode(shards); err != nil {
			return fmt.Errorf("encode parity of block %d of %d: %w", block, blocks, err)
		}
	}
	return nil
}

// recoverBlock writes the missing source shards of one block. shard returns the memory of a fragment and whether it arrived; memory of source
// fragments that did not arrive is written to, that of parity fragments that did not arrive may be nil.
func (c *coder) recoverBlock(source, parity, block int, shard func(index int) ([]byte, bool)) (recovered int, err error) {
	blocks := blockCount(source)
	size := codeSize{source: shardsOf(source, block, blocks)}
	total := shardsOf(source+parity, block, blocks)
	size.parity = total - size.source
	shards := c.shards[:total]
	for i := range shards {
		memory, arrived := shard(block + i*blocks)
		if !arrived {
			memory = memory[:0]
			if i < size.source {
				recovered++
			}
		}
		shards[i] = memory
	}
	if recovered == 0 {
		return 0, nil
	}
	code, err := c.code(size)
	if err != nil {
		return 0, err
	}
	if err := code.ReconstructData(shards); err != nil {
		return 0, fmt.Errorf("recover block %d of %d: %w", block, blocks, err)
	}
	return recovered, nil
}
