package switching

// Resolve returns the packet that a number of the outgoing stream stands for: its track and its
// extended input number. A NACK can therefore be answered after later switches. The number is
// interpreted relative to the highest number sent. ok is false if the number stands for no packet
// or is older than the history.
func (s *Switcher) Resolve(seq uint16) (track TrackID, sequence int64, ok bool) {
	number := s.extended(seq)
	r := s.history.at(number)
	if r == nil {
		return 0, 0, false
	}
	return r.track, number - r.offset, true
}

// ResolveTimestamp returns the outgoing timestamp of the packet that a number stands for, given its
// incoming timestamp ts. A retransmission therefore carries the timestamp of the original packet,
// even after the slot switched to another Group. ok is false under the conditions of Resolve.
func (s *Switcher) ResolveTimestamp(seq uint16, ts uint32) (timestamp uint32, ok bool) {
	r := s.history.at(s.extended(seq))
	if r == nil {
		return 0, false
	}
	return ts + r.timestamp, true
}

// ResolveMarker reports whether the packet that a number stands for has the marker in the outgoing
// stream, so that a retransmission carries the marker of the original packet. ok is false under the
// conditions of Resolve.
func (s *Switcher) ResolveMarker(seq uint16, p *Packet) (marker, ok bool) {
	r := s.history.at(s.extended(seq))
	if r == nil {
		return false, false
	}
	return r.marked(p), true
}

// extended returns the output number closest to the highest number sent whose low 16 bits are seq.
func (s *Switcher) extended(seq uint16) int64 {
	return s.sent.newest + int64(int16(seq-uint16(s.sent.newest)))
}

// MapTimestamp converts a timestamp of a track to the outgoing stream, for sender reports. The
// result is valid (true) for the tracks of the Group that the slot carries: the active track, the
// pending track, and earlier active tracks.
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
