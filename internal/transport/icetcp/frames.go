package icetcp

import "encoding/binary"

// maxSTUNByte is the largest first byte of a STUN message (RFC 7983 section 7).
const maxSTUNByte = 3

// frames parses the packet boundaries of a stream (RFC 4571 section 2). frames is pure.
type frames struct {
	// header is the header of the present packet. have is the number of its bytes received.
	header [frameHeader]byte
	have   int
	// rest is the number of payload bytes not received yet, once the header is complete. begun is set after the first
	// payload byte.
	rest  int
	begun bool
}

// add parses the next bytes of the stream and returns the number of STUN messages that begin in them. Empty packets
// have no meaning and count as STUN messages.
func (f *frames) add(data []byte) (messages int) {
	for len(data) > 0 {
		if f.have < frameHeader {
			f.header[f.have] = data[0]
			f.have++
			data = data[1:]
			if f.have == frameHeader {
				f.rest, f.begun = int(binary.BigEndian.Uint16(f.header[:])), false
				if f.rest == 0 {
					f.have = 0
					messages++
				}
			}
			continue
		}
		if !f.begun && data[0] <= maxSTUNByte {
			messages++
		}
		f.begun = true
		taken := min(f.rest, len(data))
		f.rest -= taken
		data = data[taken:]
		if f.rest == 0 {
			f.have = 0
		}
	}
	return messages
}
