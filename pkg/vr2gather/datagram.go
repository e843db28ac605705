package vr2gather

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrDatagram reports that a datagram between connector and peer cannot be read or sent.
var ErrDatagram = errors.New("malformed VR2Gather datagram")

// Sizes of the datagrams between connector and peer, in bytes.
const (
	// DatagramSize is the size to which both sides pad every datagram.
	DatagramSize = 1300
	// MaxDatagram is the size of the receive buffers of both sides.
	MaxDatagram = 1500
)

// datagramTypeSize is the size of the type at the start of every datagram.
const datagramTypeSize = 4

// DatagramType is the type of a datagram between connector and peer.
type DatagramType uint32

// The datagram types.
const (
	// DatagramReady is sent by the peer when it listens. The connector replies with a datagram of
	// zeros, which is also of this type, and then the peer joins. The connector listens on the port
	// number after the peer's.
	DatagramReady DatagramType = 0
	// DatagramTile and DatagramAudio carry one Packet, in either direction. The peer sends the RTP
	// payload unchanged.
	DatagramTile  DatagramType = 1
	DatagramAudio DatagramType = 2
	// DatagramControl carries the text of a quality message from the connector.
	DatagramControl DatagramType = 3
)

// Datagram is one UDP datagram between the connector and the peer on the same machine: four bytes
// of type, the body, and zeros up to DatagramSize.
type Datagram struct {
	Type DatagramType
	// Body is the data after the type. After ParseDatagram the body includes the padding.
	Body []byte
}

// ParseDatagram parses a datagram of any length without parsing its body. The error wraps
// ErrDatagram if the datagram has fewer than four bytes, more than MaxDatagram bytes, or an unknown
// type.
func ParseDatagram(datagram []byte) (Datagram, error) {
	if len(datagram) < datagramTypeSize || len(datagram) > MaxDatagram {
		return Datagram{}, fmt.Errorf(
			"%w: %d bytes, expected %d to %d",
			ErrDatagram,
			len(datagram),
			datagramTypeSize,
			MaxDatagram,
		)
	}
	d := Datagram{Type: DatagramType(binary.LittleEndian.Uint32(datagram)), Body: datagram[datagramTypeSize:]}
	if d.Type > DatagramControl {
		return Datagram{}, fmt.Errorf("%w: type is %d, expected 0 to %d", ErrDatagram, d.Type, DatagramControl)
	}
	return d, nil
}

// Append appends the datagram to dst, padded to DatagramSize. If the body does not fit, the error
// wraps ErrDatagram, and dst is unchanged.
func (d Datagram) Append(dst []byte) ([]byte, error) {
	padding := DatagramSize - datagramTypeSize - len(d.Body)
	if padding < 0 {
		return dst, fmt.Errorf(
			"%w: body of %d bytes, expected at most %d",
			ErrDatagram,
			len(d.Body),
			DatagramSize-datagramTypeSize,
		)
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(d.Type))
	dst = append(dst, d.Body...)
	var zeros [DatagramSize]byte
	return append(dst, zeros[:padding]...), nil
}

// Packet parses the body of a DatagramTile or a DatagramAudio. Errors wrap ErrDatagram for other
// types, and otherwise ErrPacket.
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

// Text returns the body up to its first NUL, without surrounding spaces: the text of a
// DatagramControl.
func (d Datagram) Text() string { return clean(string(d.Body)) }

// AppendPacketDatagram appends a padded datagram with the packet to dst. If the error is not nil,
// it wraps ErrPacket and dst is unchanged.
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
