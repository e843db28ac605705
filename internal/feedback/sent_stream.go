package feedback

import "github.com/volsfu/volsfu/internal/ecn"

// sentStream is the table of the packets of one stream: sequence number s is at index s mod len.
type sentStream struct {
	packets []sentNumber // length is a power of two
}

// sentNumber maps a sequence number to the number in the order of sending, and to the codepoint with which the packet
// left. Numbers begin at 65,536, so that 0 is none.
type sentNumber struct {
	number   int64
	sequence uint16
	ecn      ecn.Codepoint
}

// minStream is the minimum size of a table.
const minStream = 1 << 6

func (s *sentStream) at(sequence uint16) *sentNumber {
	return &s.packets[int(sequence)&(len(s.packets)-1)]
}

// needs returns the size of a table in which each packet from number begin on has an entry of its own, or 0 if there
// are none. Numbers may have been sent in any order: delayed packets of a publisher are sent late.
func (s *sentStream) needs(begin int64) int {
	var lowest, highest int
	var first sentNumber
	for _, p := range s.packets {
		switch distance := int(int16(p.sequence - first.sequence)); {
		case p.number == 0 || p.number < begin:
		case first.number == 0:
			first = p
		default:
			lowest, highest = min(lowest, distance), max(highest, distance)
		}
	}
	if first.number == 0 {
		return 0
	}
	size := minStream
	for size < min(highest-lowest+1, maxWindow) {
		size *= 2
	}
	return size
}

// resize changes the size of the table. Of packets that share an entry, the newest is kept.
func (s *sentStream) resize(size int) {
	before := s.packets
	s.packets = make([]sentNumber, size)
	for _, p := range before {
		if at := s.at(p.sequence); p.number > at.number {
			*at = p
		}
	}
}
