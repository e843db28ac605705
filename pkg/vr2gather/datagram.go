package vr2gather

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrDatagram says that a datagram between connector and peer cannot be read or sent.
var ErrDatagram = errors.New("malformed VR2Gather datagram")

// The sizes of the datagrams between connector and peer, in bytes.
const (
	// DatagramSize is what both pad every datagram to.
	DatagramSize = 1300
	// MaxDatagram is the size of the buffers that both receive into.
	MaxDatagram = 1500
)

// datagramTypeSize is the size of the number that begins every datagram.
const datagramTypeSize = 4

// DatagramType says what a datagram between connector and peer carries.
type DatagramType uint32

// The types of datagram.
const (
	// DatagramReady is sent by the peer once it listens. The connector answers with a datagram of zeros, which is one of this type, and the peer
	// joins then. The connector listens on the port behind the peer's.
	DatagramReady DatagramType = 0
	// DatagramTile and DatagramAudio carry one Packet, either way. What the peer sends is the RTP payload as it came.
	DatagramTile  DatagramType = 1
	DatagramAudio DatagramType = 2
	// DatagramControl carries the text of a quality message, from the connector.
	DatagramControl DatagramType = 3
)

// Datagram is one UDP datagram between the connector and the peer on one machine: the type as four bytes, the body, and zeros up to DatagramSize.
type Datagram struct {
	Type DatagramType
	// Body is what follows the type, padding included where it was parsed.
	Body []byte
}

// ParseDatagram reads a datagram of any length, without looking into its body. Errors wrap ErrDatagram: fewer than four bytes, more than
// MaxDatagram, or a type that nobody sends.
func ParseDatagram(datagram []byte) (Datagram, error) {
	if len(datagram) < datagramTypeSize || len(datagram) > MaxDatagram {
		return Datagram{}, fmt.Errorf("%w: %d bytes, expected %d to %d", ErrDatagram, len(datagram), datagramTypeSize, MaxDatagram)
	}
	d := Datagram{Type: DatagramType(binary.LittleEndian.Uint32(datagram)), Body: datagram[datagramTypeSize:]}
	if d.Type > DatagramControl {
		return Datagram{}, fmt.Errorf("%w: type is %d, expected 0 to %d", ErrDatagram, d.Type, DatagramControl)
	}
	return d, nil
}

// Append appends the datagram to dst, padded to DatagramSize. A body that does not fit gives an error around ErrDatagram, and dst is unchanged.
func (d Datagram) Append(dst []byte) ([]byte, error) {
	padding := DatagramSize - datagramTypeSize - len(d.Body)
	if padding < 0 {
		return dst, fmt.Errorf("%w: body of %d bytes, expected at most %d", ErrDatagram, len(d.Body), DatagramSize-datagramTypeSize)
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(d.Type))
	dst = append(dst, d.Body...)
	var zeros [DatagramSize]byte
	return append(dst, zeros[:padding]...), nil
}

// Packet reads the body of a DatagramTile or a DatagramAudio. Errors wrap ErrDatagram for other types, else ErrPacket.
func (d Datagram) Packet() (Packet, error) {
	switch d.Type {
	case DatagramTile:
		return ParsePacket(volumetric.KindVideo, d.Body)
	case DatagramAudio:
		return ParsePacket(volumetric.KindAudio, d.Body)
	default:
		return Packet{}, fmt.Errorf("%w: type %d carries no packet", ErrDatagram, d.Type)
	}
}

// Text is the body up to its first NUL, without spaces around it: what a DatagramControl says.
func (d Datagram) Text() string { return clean(string(d.Body)) }

// AppendPacketDatagram appends the datagram that carries the packet to dst, padded. Errors wrap ErrPacket, and dst is then unchanged.
func AppendPacketDatagram(dst []byte, p *Packet) ([]byte, error) {
	kind := DatagramTile
	if p.Kind == volumetric.KindAudio {
		kind = DatagramAudio
	}
	begin := len(dst)
	out, err := p.Append(binary.LittleEndian.AppendUint32(dst, uint32(kind)))
	if err != nil {
		return dst, err
	}
	// The largest packet is 128 bytes smaller than a datagram.
	var zeros [DatagramSize]byte
	return append(out, zeros[:DatagramSize-(len(out)-begin)]...), nil
}
