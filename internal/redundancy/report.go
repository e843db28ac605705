package redundancy

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Paths is the number of paths of a peer connection.
const Paths = 2

// ErrReport is the sentinel of a malformed report.
var ErrReport = errors.New("malformed report of paths")

// Report describes the arrivals on each path. On the wire it is an RTCP packet of the type APP (RFC 3550 section 6.7)
// with the name VPTH. All integers are big-endian; after the header of 12 bytes:
//
//	bytes  contents
//	4      time of the report by the receiver's clock, in µs modulo 2^32
//	16     path 0
//	16     path 1
//
// and for each path:
//
//	bytes  contents
//	4      SSRC of the newest packet
//	2      sequence number of the newest packet
//	2      1 if a packet has arrived on the path, otherwise 0, and the other values of the path are ignored
//	4      arrival of the newest packet, in µs modulo 2^32
//	4      number of arrivals modulo 2^32
type Report struct {
	// Sender is the SSRC of the peer that makes the report.
	Sender uint32
	// Time is the time of the report by the receiver's clock, in µs modulo 2^32.
	Time  uint32
	Paths [Paths]PathReport
}

// PathReport describes the arrivals on one path.
type PathReport struct {
	// Known is set if a packet has arrived on the path.
	Known bool
	// SSRC and Sequence identify the newest packet: the last one to arrive on the path.
	SSRC     uint32
	Sequence uint16
	// Arrived is the arrival of the newest packet by the receiver's clock, in µs modulo 2^32.
	Arrived uint32
	// Packets is the number of arrivals on the path, modulo 2^32.
	Packets uint32
}

const (
	reportType   = 204
	reportName   = 'V'<<24 | 'P'<<16 | 'T'<<8 | 'H'
	reportHeader = 12
	pathBytes    = 16
	// ReportBytes is the size of a report.
	ReportBytes = reportHeader + 4 + Paths*pathBytes
)

// IsReport reports whether an RTCP packet claims to be a Report.
func IsReport(packet []byte) bool {
	return len(packet) >= reportHeader && packet[1] == reportType && binary.BigEndian.Uint32(packet[8:]) == reportName
}

// Append appends the RTCP packet of the report.
func (r *Report) Append(dst []byte) []byte {
	dst = append(dst, 2<<6, reportType)
	dst = binary.BigEndian.AppendUint16(dst, ReportBytes/4-1)
	dst = binary.BigEndian.AppendUint32(dst, r.Sender)
	dst = binary.BigEndian.AppendUint32(dst, reportName)
	dst = binary.BigEndian.AppendUint32(dst, r.Time)
	for _, p := range r.Paths {
		known := uint16(0)
		if p.Known {
			known = 1
		}
		dst = binary.BigEndian.AppendUint32(dst, p.SSRC)
		dst = binary.BigEndian.AppendUint16(dst, p.Sequence)
		dst = binary.BigEndian.AppendUint16(dst, known)
		dst = binary.BigEndian.AppendUint32(dst, p.Arrived)
		dst = binary.BigEndian.AppendUint32(dst, p.Packets)
	}
	return dst
}

// ParseReport parses an RTCP packet for which IsReport is true. The error wraps ErrReport.
func ParseReport(packet []byte) (r Report, err error) {
	if len(packet) != ReportBytes || packet[0] != 2<<6 || binary.BigEndian.Uint16(packet[2:]) != ReportBytes/4-1 {
		return r, fmt.Errorf("%w: %d bytes, expected %d of version 2, subtype 0, without padding", ErrReport,
			len(packet), ReportBytes)
	}
	r.Sender, r.Time = binary.BigEndian.Uint32(packet[4:]), binary.BigEndian.Uint32(packet[reportHeader:])
	for i := range r.Paths {
		path := packet[reportHeader+4+i*pathBytes:]
		switch known := binary.BigEndian.Uint16(path[6:]); known {
		case 0:
			continue
		case 1:
		default:
			return Report{}, fmt.Errorf("%w: flags of path %d are %#x, expected 0 or 1", ErrReport, i, known)
		}
		r.Paths[i] = PathReport{
			Known:    true,
			SSRC:     binary.BigEndian.Uint32(path),
			Sequence: binary.BigEndian.Uint16(path[4:]),
			Arrived:  binary.BigEndian.Uint32(path[8:]),
			Packets:  binary.BigEndian.Uint32(path[12:]),
		}
	}
	return r, nil
}
