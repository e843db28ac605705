package feedback

import (
	"math/rand/v2"
	"testing"
)

// TestNumberSet compares a set with a map, in a window that moves around the ring several times.
func TestNumberSet(t *testing.T) {
	const size = 256
	random := rand.New(rand.NewPCG(1, 1))
	set, model := newNumberSet(size), map[int64]bool{}
	for begin := int64(firstCycle); begin < firstCycle+8*size; {
		end := begin + size
		from := begin + random.Int64N(size)
		to := from + random.Int64N(end-from+1)
		switch random.IntN(4) {
		case 0, 1:
			set.add(from)
			model[from] = true
		case 2:
			set.remove(from)
			delete(model, from)
		case 3:
			// The window moves up by the removed numbers.
			to = begin + random.Int64N(40)
			removed := set.removeRange(begin, to)
			for ; begin < to; begin++ {
				if model[begin] {
					removed--
				}
				delete(model, begin)
			}
			if removed != 0 {
				t.Fatalf("%d too many removed below %d", removed, to)
			}
			continue
		}
		expected := from
		for expected < to && !model[expected] {
			expected++
		}
		if got := set.next(from, to); got != expected || set.has(from) != model[from] {
			t.Fatalf("next of %d below %d is %d, expected %d; has it: %t, expected %t", from, to, got, expected,
				set.has(from), model[from])
		}
	}
}
