package icetcp

import "encoding/binary"

// maxSTUNByte is the largest first byte of a STUN message (RFC 7983 section 7).
const maxSTUNByte = 3

// frames follows the packets of a stream (RFC 4571 section 2). It is pure.
type frames struct {
	// header is the present packet's, of which so many bytes have come.
	header [frameHeader]byte
	have   int
	// rest is the number of the packet's bytes that have not come, once its header has; begun is set after its first
	// byte.
	rest  int
	begun bool
}

// add takes the next bytes of the stream, and returns how many STUN messages begin in them. Empty packets, which mean
// nothing, count as such messages.
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
