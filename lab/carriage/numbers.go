package carriage

import "math/bits"

// maxSpan is the largest distance of a frame number from the first number of its tile. With one bit each, 128 kB cover
// ten hours at 30 frames per second. Numbers beyond are ignored.
const maxSpan = 1 << 20

// numbers records the received frame numbers of a tile.
type numbers struct {
	begun bool
	first uint32
	// last is the highest known distance from the first number; seen has a bit for each received number.
	last  int
	seen  []uint64
	count int64
}

// expect records that a number was sent, and returns its distance from the first number. The distance is negative if
// the number is ignored.
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

// add records that a number has been received.
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

// missing returns how many numbers between the first and the last have not been received.
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
