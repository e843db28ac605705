package e2ee

import (
	"encoding/binary"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Subject identifies a frame or a packet. The sender authenticates the subject together with the data, and the receiver
// states the subject from the assignment of the slot and from the descriptor. The server can therefore not pass off a
// frame as another one.
type Subject struct {
	// Publication is the name of the sender's publication.
	Publication string
	Tile        int
	Quality     volumetric.Quality
	// Number is the frame number in the descriptor, 0 for packets.
	Number uint32
	// Prefix is the prefix of the frame as sent, nil for packets.
	Prefix []byte
}

// Versions and kinds at the beginning of the metadata.
const (
	layout     = 1
	kindFrame  = 0
	kindPacket = 1
)

// metadata returns the metadata of the subject in the sense of RFC 9605.
func (s *Subject) metadata() []byte {
	m := make([]byte, 0, 9+len(s.Prefix)+len(s.Publication))
	kind := byte(kindFrame)
	if s.Prefix == nil {
		kind = kindPacket
	}
	m = append(m, layout, kind)
	m = binary.BigEndian.AppendUint16(m, uint16(s.Tile))
	m = append(m, byte(s.Quality))
	m = binary.BigEndian.AppendUint32(m, s.Number)
	m = append(m, s.Prefix...)
	return append(m, s.Publication...)
}
