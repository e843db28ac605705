package feedback

// Continuity says how a packet's sequence number relates to those before it.
type Continuity uint8

// The kinds of continuity.
const (
	// Continuous is a number near the highest, in order or not: the packets between are late or lost.
	Continuous Continuity = iota
	// Stray is a number far from all others. It stands alone so far: the packet is to be dropped, and its extended number means nothing.
	Stray
	// Reset is the second packet in a row with numbers far from those before: the stream began anew. Nothing between is lost, and everything
	// kept by extended numbers is to be forgotten. Extended numbers go on, higher than all before.
	Reset
)

const (
	// maxJump is the distance beyond which a number is not taken for loss or reordering. 2^14 packets are 0.8 s at 190 Mbit/s: longer than any
	// deadline at rates that lose so many, and half of what 16 bits can tell apart, so that a restart at a random number shows in half of all
	// cases at once, and in the others as a loss that nobody can repair.
	maxJump = 1 << 14
	// maxConfirm is how far the second packet of a stream begun anew may lie from the first, in either direction: reordering, and some loss.
	maxConfirm = 64
	// firstCycle keeps extended numbers positive when packets from before the first one arrive late.
	firstCycle = 1 << 16
)

// Unwrapper extends the 16-bit sequence numbers of one RTP stream to 64 bits, after RFC 3550 appendix A.1. The zero value is ready.
type Unwrapper struct {
	highest   int64
	started   bool
	suspect   uint16
	suspected bool
}

// Unwrap extends a number. Its low 16 bits stay as they are; the number of the first packet of a stream is between 65,536 and 131,071.
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

// Highest is the highest extended number so far, 0 before the first packet.
func (u *Unwrapper) Highest() int64 { return u.highest }
