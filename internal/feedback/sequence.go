package feedback

// Continuity is the relation of a packet's sequence number to the previous ones.
type Continuity uint8

// The kinds of continuity.
const (
	// Continuous is a number near the highest, in order or not: the packets between are late or lost.
	Continuous Continuity = iota
	// Stray is a single number far from all others. The packet is to be dropped, and its extended number has no
	// meaning.
	Stray
	// Reset is the second packet in a row with numbers far from those before: the stream has restarted. Nothing between
	// is lost, and all state that uses extended numbers is to be dropped. Extended numbers continue, higher than all
	// before.
	Reset
)

const (
	// maxJump is the largest distance that is attributed to loss or reordering. 2^14 packets are 0.8 s at 190 Mbit/s:
	// longer than any deadline at rates with such losses, and half of the range of 16 bits. A restart at a random
	// number is detected at once in half of all cases, and appears in the others as a loss that cannot be repaired.
	maxJump = 1 << 14
	// maxConfirm is the largest distance of the second packet of a restarted stream from the first, in either
	// direction: reordering, and some loss.
	maxConfirm = 64
	// firstCycle keeps extended numbers positive if packets from before the first one arrive late.
	firstCycle = 1 << 16
)

// Unwrapper extends the 16-bit sequence numbers of one RTP stream to 64 bits, after RFC 3550 appendix A.1. The zero
// value is ready for use.
type Unwrapper struct {
	highest   int64
	started   bool
	suspect   uint16
	suspected bool
}

// Unwrap extends a number. Its low 16 bits do not change; the number of the first packet of a stream is between 65,536
// and 131,071.
func (u *Unwrapper) Unwrap(sequence uint16) (int64, Continuity) {
	if !u.started {
		u.started = true
		u.highest = firstCycle + int64(sequence)
		return u.highest, Continuous
	}
	distance := int16(sequence - uint16(u.highest))
	if distance >= -maxJump && distance <= maxJump {
		u.suspected = false
		extended := u.highest + int64(distance)
		u.highest = max(u.highest, extended)
		return extended, Continuous
	}
	if near := int16(sequence - u.suspect); !u.suspected || near < -maxConfirm || near > maxConfirm {
		u.suspected, u.suspect = true, sequence
		return u.highest + int64(distance), Stray
	}
	u.suspected = false
	u.highest += int64(sequence - uint16(u.highest))
	return u.highest, Reset
}

// Highest returns the highest extended number, 0 before the first packet.
func (u *Unwrapper) Highest() int64 { return u.highest }
