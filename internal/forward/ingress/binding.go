package ingress

import "github.com/volsfu/volsfu/internal/forward/track"

// Bind makes what comes with an SSRC the packets of a track, and what comes with the other one, if that is not 0, its
// retransmissions (RFC 4588). A track has one binding. With another SSRC or connection its numbers begin again, and its
// slots go on without a gap. Binding again what is bound changes nothing.
func (i *Ingress) Bind(ssrc, retransmissionSSRC uint32, t *track.Track) {
	s := streamOf(t)
	if s != nil {
		if other := s.ingress.Load(); other != nil && other != i {
			other.Unbind(t)
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return
	}
	known := s != nil
	if !known {
		s = &stream{track: t}
	}
	s.ingress.Store(i)
	if !t.Enter(s) {
		s.ingress.Store(nil)
		return
	}
	switch {
	case !known:
		s.begin(i)
	case i.streams[s.ssrc] == s && s.ssrc == ssrc && s.repair == retransmissionSSRC:
		return
	case i.streams[s.ssrc] == s && s.ssrc == ssrc:
		i.remove(s)
	default:
		i.remove(s)
		s.move(i)
	}
	if replaced := i.streams[ssrc]; replaced != nil {
		i.remove(replaced)
		replaced.ingress.Store(nil)
	}
	s.ssrc, s.repair = ssrc, retransmissionSSRC
	i.streams[ssrc] = s
	if retransmissionSSRC != 0 {
		i.repairs[retransmissionSSRC] = s
	}
	if i.reportDue.IsZero() {
		i.reportDue = i.set.clock.Now().Add(i.set.cfg.ReportInterval)
		i.wake()
	}
}

// Unbind ends the binding of a track. What it has in its cache stays.
func (i *Ingress) Unbind(t *track.Track) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if s := streamOf(t); s != nil && s.ingress.Load() == i {
		i.remove(s)
		s.ingress.Store(nil)
		i.dropGroup(t.Group())
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

// dropGroup forgets a group when its last track is gone.
func (i *Ingress) dropGroup(group uint64) {
	for _, s := range i.streams {
		if s.track.Group() == group {
			return
		}
	}
	i.groups.drop(group)
}
