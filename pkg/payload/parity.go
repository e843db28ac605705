package payload

import "github.com/klauspost/reedsolomon"

const (
	// blockSource is the largest number of source fragments of one parity block. A Reed–Solomon code over GF(2^8) has at most 256 shards, so
	// that a full block has room for 56 parity fragments (28 %).
	blockSource = 200
	// blockTotal is the largest number of fragments of one parity block, source and parity.
	blockTotal = 256
	// maxPackets is the largest number of fragments of a frame, because Index has 16 bits.
	maxPackets = 1 << 16
	// maxBlocks is the largest number of parity blocks of a frame.
	maxBlocks = (maxPackets + blockSource - 1) / blockSource
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

// Completable tells whether the first fragments of a frame with so many source fragments complete it without those that are lost: whether every parity block
// still has as many fragments, source or parity, as it has source fragments. Lost are indices, each at most once; those that are no such fragments do not count.
func Completable(source, fragments int, lost []int) bool {
	blocks := blockCount(source)
	if fragments < source || source <= 0 || source > maxPackets {
		return false
	}
	var missing [maxBlocks]int
	for _, index := range lost {
		if index >= 0 && index < fragments {
			missing[index%blocks]++
		}
	}
	for block := range blocks {
		if missing[block] > shardsOf(fragments, block, blocks)-shardsOf(source, block, blocks) {
			return false
		}
	}
	return true
}

// coder makes the parity of one stream, and recovers with it what was lost. It keeps memory for the next frame.
//
// The code is systematic, with the Cauchy matrix as generator: parity shard r is the sum over the source shards c of c's bytes divided by
// (r xor c) in GF(2^8) with the polynomial 0x11d, where r counts on from the source shards. Hence a parity shard does not depend on how many
// others there are, and there is nothing to prepare for frames of a new length.
type coder struct {
	shards [blockTotal][]byte
	// missing are the source shards to recover, rows the parity shards that do it, and matrix the equations, of a block.
	missing, rows []int
	matrix        []byte
}

// field is arithmetic on slices in GF(2^8) with the polynomial 0x11d.
var field reedsolomon.LowLevel

// element is the factor of a source shard in a parity shard.
func element(row, column int) byte { return reedsolomon.Inv(byte(row ^ column)) }

// encode adds to the parity shards of all blocks, which are zero, what they are made of. shard returns the memory of a fragment, source or parity, FragmentSize
// bytes each.
func (c *coder) encode(source, parity int, shard func(index int) []byte) {
	blocks := blockCount(source)
	for block := range blocks {
		sources, total := shardsOf(source, block, blocks), shardsOf(source+parity, block, blocks)
		for row := sources; row < total; row++ {
			c.shards[row] = shard(block + row*blocks)
		}
		for column := range sources {
			data := shard(block + column*blocks)
			for row := sources; row < total; row++ {
				field.GalMulSliceXor(element(row, column), data, c.shards[row])
			}
		}
	}
}
