package switching

// Resolve returns the packet that a number of the outgoing stream stands for, so that a receiver's NACK can be answered, also after later
// switches: the track and its extended input number. The number is read relative to the highest one sent. It is not ok where the
// number stands for nothing, or is older than the history.
func (s *Switcher) Resolve(seq uint16) (track TrackID, sequence int64, ok bool) {
	number := s.extended(seq)
	r := s.history.at(number)
	if r == nil {
		return 0, 0, false
	}
	return r.track, number - r.offset, true
}

// ResolveTimestamp returns the outgoing timestamp of the packet that a number stands for, given its incoming one, so that a retransmission carries what the
// first sending did, also after the slot went to another Group. It is ok where Resolve is.
func (s *Switcher) ResolveTimestamp(seq uint16, ts uint32) (timestamp uint32, ok bool) {
	r := s.history.at(s.extended(seq))
	if r == nil {
		return 0, false
	}
	return ts + r.timestamp, true
}

// ResolveMarker returns whether the packet that a number stands for has the marker in the outgoing stream, so that a retransmission carries what the first sending
// did. It is ok where Resolve is.
func (s *Switcher) ResolveMarker(seq uint16, p *Packet) (marker, ok bool) {
	r := s.history.at(s.extended(seq))
	if r == nil {
		return false, false
	}
	return r.marked(p), true
}

// extended is the output number nearest to the highest one sent that the receiver sees as seq.
func (s *Switcher) extended(seq uint16) int64 {
	return s.sent.newest + int64(int16(seq-uint16(s.sent.newest)))
}

// MapTimestamp maps a timestamp of a track to the outgoing stream's, for sender reports. It is ok for the tracks of the Group that the slot
// carries: the active one, the pending one, and those that were active before.
func (s *Switcher) MapTimestamp(track TrackID, ts uint32) (uint32, bool) {
	if !s.time.started || track == 0 {
		return 0, false
	}
	known := track == s.active.Track ||
		s.handover.pending && track == s.handover.source.Track && s.handover.source.Group == s.time.group
	for i := 0; !known && i < s.history.len(); i++ {
		r := s.history.back(i)
		known = r.track == track && r.timestamp == s.time.offset && r.group == s.time.group
	}
	return ts + s.time.offset, known
}
