package ingress

import (
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/forward/track"
)

// Some publishers state no SSRCs in their descriptions. The first packets of each stream name the encoding of their
// line, or the line, in a header extension (RFC 8852, RFC 9143 section 15). The first SSRC with a name is bound to the
// track of the name for good, so that a publisher cannot use up memory by changing SSRCs.

// Name names a stream: by the id of its encoding with simulcast, otherwise by the mid of its line.
type Name struct{ Layer, MID string }

// NameExtensions are the identifiers of the header extensions with names, 0 for none. Retransmission has the id of the
// encoding of which a packet is a retransmission.
type NameExtensions struct{ Layer, MID, Retransmission uint8 }

// of returns the name in a packet, empty if there is none. retransmission is set if the packet is a retransmission of
// the stream with the name.
func (e NameExtensions) of(p *rtp.Packet) (name Name, retransmission bool) {
	text := func(extension uint8) string {
		if extension == 0 {
			return ""
		}
		return string(p.GetExtension(extension))
	}
	if layer := text(e.Retransmission); layer != "" {
		return Name{Layer: layer}, true
	}
	if layer := text(e.Layer); layer != "" {
		return Name{Layer: layer}, false
	}
	return Name{MID: text(e.MID)}, false
}

// names are the tracks of a connection that are bound by name. The mutex of the ingress guards them.
type names struct {
	extensions NameExtensions
	// waiting are the tracks without an SSRC, bound the others.
	waiting, bound map[Name]*track.Track
}

func newNames() *names {
	return &names{waiting: make(map[Name]*track.Track), bound: make(map[Name]*track.Track)}
}
