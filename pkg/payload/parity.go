package payload

import "github.com/klauspost/reedsolomon"

const (
	// blockSource is the largest number of source fragments of one parity block. A Reed–Solomon
	// code over GF(2^8) has at most 256 shards, so that a full block has room for 56 parity
	// fragments (28 %).
	blockSource = 200
	// blockTotal is the largest number of fragments of one parity block, source and parity.
	blockTotal = 256
	// maxPackets is the largest number of fragments of a frame, because Index has 16 bits.
	maxPackets = 1 << 16
	// maxBlocks is the largest number of parity blocks of a frame.
	maxBlocks = (maxPackets + blockSource - 1) / blockSource
)

// MaxParity returns the largest number of parity fragments of a frame with the given number of
// source fragments.
func MaxParity(source int) int {
	return min(blockCount(source)*blockTotal, maxPackets) - source
}

// blockCount returns the number of parity blocks of a frame. Fragment i, source or parity, belongs
// to block i mod blocks and is shard i div blocks of that block. Therefore a burst of losses
// spreads over all blocks, and in every block the source shards come first.
func blockCount(source int) int { return (source + blockSource - 1) / blockSource }

// shardsOf returns the number of fragments, of the first count, that belong to block.
func shardsOf(count, block, blocks int) int { return (count - block + blocks - 1) / blocks }

// Completable reports whether the first fragments of a frame complete the frame although the
// fragments in lost are missing: every parity block must keep at least as many fragments, source or
// parity, as it has source fragments. source is the number of source fragments of the frame. lost
// contains each index at most once; an index outside [0, fragments) is ignored.
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

// coder computes the parity of one stream and recovers lost fragments. The coder keeps its memory for the next frame.
//
// The code is systematic and uses a Cauchy matrix as generator: parity shard r is the sum over the
// source shards c of the bytes of c divided by (r xor c) in GF(2^8) with the polynomial 0x11d, with
// r counting on from the source shards. Therefore a parity shard does not depend on the number of
// parity shards, and frames of a new length need no preparation.
type coder struct {
	shards [blockTotal][]byte
	// missing lists the source shards of a block to recover, rows the parity shards used, and
	// matrix holds the equations.
	missing, rows []int
	matrix        []byte
}

// field implements arithmetic on slices in GF(2^8) with the polynomial 0x11d.
var field reedsolomon.LowLevel

// element returns the coefficient of source shard column in parity shard row.
func element(row, column int) byte { return reedsolomon.Inv(byte(row ^ column)) }

// encode adds the source shards of all blocks to their parity shards, which must be zero. shard
// returns the memory of a fragment, source or parity, of FragmentSize bytes.
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
