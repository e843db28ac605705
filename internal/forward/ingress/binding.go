package ingress

import (
	"github.com/volsfu/volsfu/internal/forward/injection"
	"github.com/volsfu/volsfu/internal/forward/track"
)

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
	here := known && i.bindings.has(s) && s.ssrc == ssrc
	switch {
	case !known:
		s.begin(i)
	case here && s.repair == retransmissionSSRC:
		return
	default:
		i.bindings.remove(s)
		if !here {
			s.move(i)
		}
	}
	i.bindings.put(s, ssrc, retransmissionSSRC)
	i.startReports()
}

// BindByName binds a track to the first stream with a name. The extensions are the same for all names of a connection.
func (i *Ingress) BindByName(extensions NameExtensions, name Name, t *track.Track) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.names == nil {
		i.names = newNames()
	}
	i.names.extensions = extensions
	i.names.waiting[name] = t
}

// bindNamed assigns the SSRC of a packet, which is not bound, to a track by the name in the packet, as Bind does. The
// stream waits: another connection may have the track. The SSRC of retransmissions is bound. bindNamed reports whether
// the SSRC is bound or waits then. The caller holds the mutex.
func (i *Ingress) bindNamed(ssrc uint32, packet []byte) bool {
	n, p := i.names, &i.packet
	if n == nil || p.Unmarshal(packet) != nil {
		return false
	}
	name, retransmission := n.extensions.of(p)
	if retransmission {
		t := n.bound[name]
		if t == nil {
			return false
		}
		s := streamOf(t)
		if s == nil || s.ingress.Load() != i || s.repair != 0 {
			return false
		}
		i.bindings.putRepair(s, ssrc)
		return true
	}
	t := n.waiting[name]
	if t == nil {
		return false
	}
	delete(n.waiting, name)
	if i.closed {
		return false
	}
	i.takeovers.waiting.forget(t)
	i.takeovers.put(&waiting{track: t, ssrc: ssrc})
	n.bound[name] = t
	return true
}

// NewInjector binds a track to injected frames, as Bind does. Chunked frames are at most limit bytes long.
func (i *Ingress) NewInjector(t *track.Track, limit int) *injection.Injector {
	j := injection.New(i, i.chunks, limit)
	if !i.takeovers.add(&waiting{track: t, ssrc: j.SSRC(), injector: j}) {
		j.End()
	}
	return j
}

// Unbind ends the binding of a track, also a binding that waits for its first packet. The packets in the cache remain.
func (i *Ingress) Unbind(t *track.Track) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.takeovers.waiting.forget(t)
	if s := streamOf(t); s != nil && s.ingress.Load() == i {
		i.bindings.release(s)
	}
}
