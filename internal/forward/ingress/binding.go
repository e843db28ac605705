package ingress

import "github.com/volsfu/volsfu/internal/forward/track"

// Bind assigns the packets of an SSRC to a track, and the packets of retransmissionSSRC, if not 0, to its
// retransmissions (RFC 4588). A track has one binding. If another ingress has the track, Bind takes effect with the
// first packet of the SSRC that continues the frames of that ingress. With another SSRC or connection the publisher's
// sequence numbers start again, and the slots continue without a gap. Repeating an existing binding has no effect.
func (i *Ingress) Bind(ssrc, retransmissionSSRC uint32, t *track.Track) {
	i.BindFrom(ssrc, retransmissionSSRC, t, 0)
}

// BindFrom is Bind for packets with an Origin (packetlog.Packet): those of another server's connection.
func (i *Ingress) BindFrom(ssrc, retransmissionSSRC uint32, t *track.Track, origin uint32) {
	i.takeovers.add(&waiting{track: t, ssrc: ssrc, repair: retransmissionSSRC, origin: origin})
}

// bind is Bind for a track that no other connection has bound. The caller holds the mutex.
func (i *Ingress) bind(ssrc, retransmissionSSRC uint32, t *track.Track) {
	if i.closed {
		return
	}
	s := streamOf(t)
	known := s != nil
	if !known {
		s = &stream{track: t}
	}
	s.ingress.Store(i)
	s.origin = 0
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

// Unbind ends the binding of a track, also a binding that waits for its first packet. The packets in the cache remain.
func (i *Ingress) Unbind(t *track.Track) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.takeovers.forget(t)
	if s := streamOf(t); s != nil && s.ingress.Load() == i {
		i.release(s)
	}
}

// release ends the binding of a stream. The caller holds the mutex, also in the functions below.
func (i *Ingress) release(s *stream) {
	i.remove(s)
	s.ingress.Store(nil)
	i.dropGroup(s.track.Group())
}

// remove removes a stream from the tables.
func (i *Ingress) remove(s *stream) {
	s.end()
	if i.streams[s.ssrc] == s {
		delete(i.streams, s.ssrc)
	}
	if i.repairs[s.repair] == s {
		delete(i.repairs, s.repair)
	}
}

// dropGroup removes a group when its last track is unbound.
func (i *Ingress) dropGroup(group uint64) {
	for _, s := range i.streams {
		if s.track.Group() == group {
			return
		}
	}
	i.groups.drop(group)
}
