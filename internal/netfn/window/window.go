// Package window models the window in which the receiver of a pair remembers the numbers of a flow. The receiver's BPF
// program implements the same window with compare-and-swap; a fuzz test drives both with the same input.
package window

const (
	// Size is the number of consecutive numbers that a window covers. A number is remembered until a number of the same
	// word's next round arrives, which is at least Size - 31 greater.
	Size  = 32768
	words = Size / 32
	// A word's tag has the low 15 bits of the epoch, and the high 17 bits of the number. The other 15 bits of the
	// number are the index of the word (10 bits) and of the bit (5 bits).
	roundBits = 17
	halfRound = 1 << (roundBits - 1)
)

// Verdict is the decision on a packet.
type Verdict uint8

const (
	// First is the first copy of a packet: it passes.
	First Verdict = iota
	// Repeat is a further copy: it is dropped.
	Repeat
	// Outside is a packet that the window does not cover, or of another epoch: it passes, because it may be the first
	// copy.
	Outside
)

// String returns the verdict as transcripts have it.
func (v Verdict) String() string { return [...]string{"first", "repeat", "outside"}[v] }

// Window is the window of one flow. The zero value has no epoch: everything is outside. It has no locks.
type Window struct {
	epoch uint16
	// words have the tag in the high 32 bits, and a bit for each of 32 numbers in the low 32 bits. A word without bits
	// is empty.
	words [words]uint64
}

// Restart begins an epoch. Words of other epochs count as empty, so nothing is cleared.
func (w *Window) Restart(epoch uint16) { w.epoch = epoch }

// Add judges a packet and remembers its number.
func (w *Window) Add(epoch uint16, number uint32) Verdict {
	if epoch == 0 || epoch != w.epoch {
		return Outside
	}
	word := &w.words[number>>5%words]
	tag := uint32(epoch)<<roundBits | number>>(32-roundBits)
	bit := uint64(1) << (number & 31)
	fresh := uint64(tag)<<32 | bit
	old := uint32(*word >> 32)
	switch {
	case uint32(*word) == 0 || (old^tag)>>roundBits != 0:
		*word = fresh
	case old == tag:
		if *word&bit != 0 {
			return Repeat
		}
		*word |= bit
	case (tag-old)&(1<<roundBits-1) < halfRound: // serial number arithmetic (RFC 1982)
		*word = fresh
	default:
		return Outside
	}
	return First
}
