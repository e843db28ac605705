package downlink

import "github.com/volsfu/volsfu/internal/feedback"

// continuity follows the sequence numbers of one media stream as its packets arrive. Retransmissions do not count.
type continuity struct {
	begun   bool
	highest int64
}

// breaks counts the breaks in a series of sequence numbers.
type breaks struct {
	// gaps counts numbers that a later packet preceded. repeats counts packets that had arrived before.
	gaps, repeats uint64
}

// received returns the breaks that a packet makes. kind is the NACK generator's judgement of the packet, which knows
// the missing packets.
func (c *continuity) received(sequence int64, kind feedback.Arrival) breaks {
	switch {
	case !c.begun:
		c.begun, c.highest = true, sequence
		return breaks{}
	case sequence > c.highest:
		passed := sequence - c.highest - 1
		c.highest = sequence
		return breaks{gaps: uint64(passed)}
	case kind == feedback.Old:
		return breaks{repeats: 1}
	default:
		return breaks{}
	}
}

// restart drops the state: the stream begins again with other numbers.
func (c *continuity) restart() { c.begun = false }

func (b *breaks) add(more breaks) {
	b.gaps += more.gaps
	b.repeats += more.repeats
}
