package ingress

// bindings are the streams that are bound to the SSRCs of a connection. The mutex of the ingress guards them.
type bindings struct {
	// streams are the streams by SSRC, repairs the same streams by the SSRC of their retransmissions.
	streams, repairs map[uint32]*stream
	groups           groups
}

func newBindings() bindings {
	return bindings{streams: make(map[uint32]*stream), repairs: make(map[uint32]*stream), groups: newGroups()}
}

// has reports whether a stream is bound. s may be nil.
func (b *bindings) has(s *stream) bool { return s != nil && b.streams[s.ssrc] == s }

// put binds a stream that is not bound to an SSRC, and to the SSRC of its retransmissions, 0 for none. The stream that
// had the SSRC is unbound.
func (b *bindings) put(s *stream, ssrc, repair uint32) {
	if replaced := b.streams[ssrc]; replaced != nil {
		b.remove(replaced)
		replaced.ingress.Store(nil)
	}
	s.ssrc = ssrc
	b.streams[ssrc] = s
	b.putRepair(s, repair)
}

// putRepair binds a stream to the SSRC of its retransmissions, 0 for none.
func (b *bindings) putRepair(s *stream, repair uint32) {
	s.repair = repair
	if repair != 0 {
		b.repairs[repair] = s
	}
}

// release ends the binding of a stream. The state of its group is dropped with the last stream of the group.
func (b *bindings) release(s *stream) {
	b.remove(s)
	s.ingress.Store(nil)
	group := s.track.Group()
	for _, other := range b.streams {
		if other.track.Group() == group {
			return
		}
	}
	b.groups.drop(group)
}

// remove removes a stream from the tables.
func (b *bindings) remove(s *stream) {
	s.end()
	if b.streams[s.ssrc] == s {
		delete(b.streams, s.ssrc)
	}
	if b.repairs[s.repair] == s {
		delete(b.repairs, s.repair)
	}
}

// clear ends all bindings.
func (b *bindings) clear() {
	for _, s := range b.streams {
		s.ingress.Store(nil)
		s.end()
	}
	clear(b.streams)
	clear(b.repairs)
	b.groups.clear()
}

// sweep discards incomplete frames whose chunks no longer arrive, of the injectors of bound streams.
func (b *bindings) sweep() {
	for _, s := range b.streams {
		if s.injector != nil {
			s.injector.Sweep()
		}
	}
}
