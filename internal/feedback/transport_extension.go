package feedback

import (
	"encoding/binary"
	"fmt"

	"github.com/pion/rtp"
)

const (
	transportSequenceSize = 2
	rtpHeaderSize         = 12
	oneByteProfile        = 0xbede // RFC 8285 section 4.2
	endOfExtensions       = 15     // identifier that ends the processing
)

// SetTransportSequence sets the transport-wide sequence number of a header, in the extension with the given identifier
// (1 to 14). The first call on a header allocates the extension, later calls overwrite it in place. The header must
// therefore own its extensions: a header unmarshalled from a packet shares them with the packet, and copies of a header
// share them with each other. Errors are those of rtp.Header.SetExtension.
func SetTransportSequence(h *rtp.Header, id uint8, sequence uint16) error {
	if extension := h.GetExtension(id); len(extension) == transportSequenceSize {
		binary.BigEndian.PutUint16(extension, sequence)
		return nil
	}
	if err := h.SetExtension(id, binary.BigEndian.AppendUint16(nil, sequence)); err != nil {
		return fmt.Errorf("set transport-wide sequence number as extension %d: %w", id, err)
	}
	return nil
}

// TransportSequence returns the transport-wide sequence number of an RTP packet, from the one-byte header extension
// (RFC 8285 section 4.2) with the given identifier. It returns false for packets without the extension, and for
// malformed packets.
func TransportSequence(packet []byte, id uint8) (uint16, bool) {
	if len(packet) < rtpHeaderSize || packet[0]&0xd0 != 0x90 {
		return 0, false // not version 2 with extensions
	}
	at := rtpHeaderSize + 4*int(packet[0]&0x0f)
	if len(packet) < at+4 || binary.BigEndian.Uint16(packet[at:]) != oneByteProfile {
		return 0, false
	}
	end := at + 4 + 4*int(binary.BigEndian.Uint16(packet[at+2:]))
	if len(packet) < end {
		return 0, false
	}
	for at += 4; at < end; {
		if packet[at] == 0 {
			at++ // padding
			continue
		}
		element, size := packet[at]>>4, int(packet[at]&0x0f)+1
		// Identifier 0 is padding, and with a length it also ends the extensions.
		if element == 0 || element == endOfExtensions || at+1+size > end {
			return 0, false
		}
		if element == id {
			if size != transportSequenceSize {
				return 0, false
			}
			return binary.BigEndian.Uint16(packet[at+1:]), true
		}
		at += 1 + size
	}
	return 0, false
}
