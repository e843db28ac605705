package ingress

import "github.com/volsfu/volsfu/internal/forward/track"

// Some publishers state no SSRCs in their descriptions. The first packets of each stream name the encoding of their
// line, or the line, in a header extension (RFC 8852, RFC 9143 section 15). The first SSRC with a name is bound to the
// track of the name for good, so that a publisher cannot use up memory by changing SSRCs.

// Name names a stream: by the id of its encoding with simulcast, otherwise by the mid of its line.
type Name struct{ Layer, MID string }

// NameExtensions are the identifiers of the header extensions with names, 0 for none. Retransmission has the id of the
// encoding of which a packet is a retransmission.
type NameExtensions struct{ Layer, MID, Retransmission uint8 }

// names has the tracks of a connection that are bound by name.
type names struct {
	extensions NameExtensions
	waiting    map[Name]*track.Track
	bound      map[Name]*stream
}

// BindByName binds a track to the first stream with a name. The extensions are the same for all names of a connection.
func (i *Ingress) BindByName(extensions NameExtensions, name Name, t *track.Track) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.names == nil {
		i.names = &names{waiting: make(map[Name]*track.Track), bound: make(map[Name]*stream)}
	}
	i.names.extensions = extensions
	i.names.waiting[name] = t
}

// bindNamed binds the SSRC of a packet, which is not bound, by the name in the packet. It reports whether the SSRC is
// bound then. The caller holds the mutex.
func (i *Ingress) bindNamed(ssrc uint32, packet []byte) bool {
	n, p := i.names, &i.packet
	if n == nil || p.Unmarshal(packet) != nil {
		return false
	}
	text := func(extension uint8) string {
		if extension == 0 {
			return ""
		}
		return string(p.GetExtension(extension))
	}
	if layer := text(n.extensions.Retransmission); layer != "" {
		s := n.bound[Name{Layer: layer}]
		if s == nil || s.repair != 0 || i.streams[s.ssrc] != s {
			return false
		}
		s.repair = ssrc
		i.repairs[ssrc] = s
		return true
	}
	name := Name{Layer: text(n.extensions.Layer)}
	if name.Layer == "" {
		name.MID = text(n.extensions.MID)
	}
	t := n.waiting[name]
	if t == nil {
		return false
	}
	delete(n.waiting, name)
	i.bind(ssrc, 0, t)
	s := i.streams[ssrc]
	if s != nil {
		n.bound[name] = s
	}
	return s != nil
}
