package feedback

import "math/bits"

// numberSet is a set of extended numbers within a window of cap numbers: a ring of bits. The owner removes numbers that
// leave the window.
type numberSet struct {
	words []uint64 // length is a power of two
}

// newNumberSet returns a set for a window of size numbers, a power of two and at least 64.
func newNumberSet(size int) numberSet { return numberSet{words: make([]uint64, size/64)} }

func (s numberSet) word(number int64) *uint64 { return &s.words[int(number>>6)&(len(s.words)-1)] }

func (s numberSet) has(number int64) bool { return *s.word(number)>>(number&63)&1 != 0 }

func (s numberSet) add(number int64) { *s.word(number) |= 1 << (number & 63) }

func (s numberSet) remove(number int64) { *s.word(number) &^= 1 << (number & 63) }

// next returns the lowest number of the set from from to below end, or end. It examines 64 numbers at once.
func (s numberSet) next(from, end int64) int64 {
	for from < end {
		if word := *s.word(from) >> (from & 63); word != 0 {
			return min(from+int64(bits.TrailingZeros64(word)), end)
		}
		from = from | 63 + 1
	}
	return end
}

// clear removes all numbers.
func (s numberSet) clear() { clear(s.words) }

// removeRange removes the numbers from from to below end, which lie within one window, and returns their count.
func (s numberSet) removeRange(from, end int64) int {
	removed := 0
	for from < end {
		after := min(from|63+1, end)
		// Most words are empty in a long range.
		if word := s.word(from); *word != 0 {
			mask := ^uint64(0) << (from & 63)
			if after&63 != 0 {
				mask &= 1<<(after&63) - 1
			}
			removed += bits.OnesCount64(*word & mask)
			*word &^= mask
		}
		from = after
	}
	return removed
}

// copyFrom adds the numbers of another set from from to below end.
func (s numberSet) copyFrom(other numberSet, from, end int64) {
	for number := other.next(from, end); number < end; number = other.next(number+1, end) {
		s.add(number)
	}
}
