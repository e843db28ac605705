package carriage

import "math/bits"

// maxSpan is how far a frame number may be from the first one of its tile: a bit for each up to it, 128 kB, is ten hours at 30 per second. What is
// beyond counts for nothing.
const maxSpan = 1 << 20

// numbers are the frame numbers of a tile that have come.
type numbers struct {
	begun bool
	first uint32
	// last is the highest distance from the first one that is known of, seen has a bit for each that has come.
	last  int
	seen  []uint64
	count int64
}

// expect notes that a number was sent, and returns its distance from the first, negative where it does not count.
func (n *numbers) expect(number uint32) int {
	if !n.begun {
		n.begun, n.first = true, number
	}
	distance := int(int32(number - n.first))
	if distance < 0 || distance >= maxSpan {
		return -1
	}
	n.last = max(n.last, distance)
	return distance
}

// add notes that a number has come.
func (n *numbers) add(number uint32) {
	at := n.expect(number)
	if at < 0 {
		return
	}
	if words := at/64 + 1; words > len(n.seen) {
		n.seen = append(n.seen, make([]uint64, words-len(n.seen))...)
	}
	if n.seen[at/64]>>(at%64)&1 == 0 {
		n.seen[at/64] |= 1 << (at % 64)
		n.count++
	}
}

// missing is how many between the first and the last have not come.
func (n *numbers) missing() int64 {
	if !n.begun {
		return 0
	}
	set := 0
	for _, word := range n.seen {
		set += bits.OnesCount64(word)
	}
	return int64(n.last + 1 - set)
}
