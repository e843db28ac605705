package client

import "github.com/volsfu/volsfu/internal/feedback"

// numbering follows the sequence numbers of one media stream as they arrive, without retransmissions.
type numbering struct {
	begun   bool
	highest int64
}

// breaks count where sequence numbers did not simply go on.
type breaks struct {
	// gaps are numbers that a later packet came before, repeats packets that had come already.
	gaps, repeats uint64
}

// received tells what a packet broke; kind is what it was to the NACK generator, which knows what is missing.
func (n *numbering) received(sequence int64, kind feedback.Arrival) breaks {
	switch {
	case !n.begun:
		n.begun, n.highest = true, sequence
		return breaks{}
	case sequence > n.highest:
		passed := sequence - n.highest - 1
		n.highest = sequence
		return breaks{gaps: uint64(passed)}
	case kind == feedback.Old:
		return breaks{repeats: 1}
	default:
		return breaks{}
	}
}

// restart forgets the numbers of a stream that begins anew.
func (n *numbering) restart() { n.begun = false }

func (b *breaks) add(more breaks) {
	b.gaps += more.gaps
	b.repeats += more.repeats
}
