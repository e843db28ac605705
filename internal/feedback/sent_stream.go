package feedback

// sentStream finds the packets of one stream: the one with sequence number s stands at s mod len.
type sentStream struct {
	packets []sentNumber // a power of two
}

// sentNumber is the place of a packet in the order of sending. Numbers begin at 65,536, so that 0 is none.
type sentNumber struct {
	number   int64
	sequence uint16
}

// minStream is the least size of a table.
const minStream = 1 << 6

func (s *sentStream) at(sequence uint16) *sentNumber {
	return &s.packets[int(sequence)&(len(s.packets)-1)]
}

// needs is the size of the table that the packets from a place on need, 0 where there are none.
func (s *sentStream) needs(begin int64) int {
	var newest sentNumber
	for _, p := range s.packets {
		if p.number >= begin && p.number > newest.number {
			newest = p
		}
	}
	if newest.number == 0 {
		return 0
	}
	span := 0
	for _, p := range s.packets {
		if p.number > 0 && p.number >= begin {
			span = max(span, int(newest.sequence-p.sequence)+1)
		}
	}
	size := minStream
	for size < min(span, maxWindow) {
		size *= 2
	}
	return size
}

// resize gives the table another size. Of packets that share a place then, the newest stays.
func (s *sentStream) resize(size int) {
	before := s.packets
	s.packets = make([]sentNumber, size)
	for _, p := range before {
		if at := s.at(p.sequence); p.number > at.number {
			*at = p
		}
	}
}
