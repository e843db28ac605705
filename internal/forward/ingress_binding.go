package forward

// Bind makes what comes with an SSRC the packets of a track, and what comes with the other one, if that is not 0, its retransmissions (RFC 4588).
// A track has one binding. With another SSRC or connection its numbers begin anew, and its slots go on without a gap. Binding again what is bound changes
// nothing.
func (i *Ingress) Bind(ssrc, retransmissionSSRC uint32, t *Track) {
	if other := t.ingress.Load(); other != nil && other != i {
		other.Unbind(t)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed || !t.enter(i) {
		return
	}
	s := t.stream
	switch {
	case s == nil:
		s = i.newStream(t)
	case i.streams[s.ssrc] == s && s.ssrc == ssrc && s.repair == retransmissionSSRC:
		return
	case i.streams[s.ssrc] == s && s.ssrc == ssrc:
		i.remove(s)
	default:
		i.remove(s)
		s.move(i)
	}
	if replaced := i.streams[ssrc]; replaced != nil {
		replaced.track.ingress.Store(nil)
		i.remove(replaced)
	}
	t.stream, s.ssrc, s.repair = s, ssrc, retransmissionSSRC
	i.streams[ssrc] = s
	if retransmissionSSRC != 0 {
		i.repairs[retransmissionSSRC] = s
	}
	if i.reportDue.IsZero() {
		i.reportDue = i.engine.clock().Add(i.engine.cfg.ReportInterval)
		i.wake()
	}
}

// Unbind ends the binding of a track. What it has in its cache stays.
func (i *Ingress) Unbind(t *Track) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if t.ingress.Load() == i && t.stream != nil {
		i.remove(t.stream)
		t.ingress.Store(nil)
		i.dropGroup(t.group)
	}
}

// remove takes a stream from the tables. The caller holds the mutex, here and below.
func (i *Ingress) remove(s *stream) {
	s.end()
	if i.streams[s.ssrc] == s {
		delete(i.streams, s.ssrc)
	}
	if i.repairs[s.repair] == s {
		delete(i.repairs, s.repair)
	}
}

// dropGroup forgets the frame numbers of a group when its last track is gone.
func (i *Ingress) dropGroup(group uint64) {
	for _, s := range i.streams {
		if s.track.group == group {
			return
		}
	}
	delete(i.groups, group)
	delete(i.instants, group)
}
