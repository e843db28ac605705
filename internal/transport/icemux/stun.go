package icemux

import (
	"bytes"
	"encoding/binary"
)

// The parts of STUN (RFC 8489 sections 5 and 14) that identify the ICE agent of a message.
const (
	stunHeader      = 20
	stunCookie      = 0x2112a442
	attributeHeader = 4
	usernameType    = 0x0006

	kindRequest = 0x0001
	kindSuccess = 0x0101
	kindError   = 0x0111
)

// stunMessage is a STUN message with a valid header. The body is not checked.
type stunMessage []byte

// parseSTUN checks a datagram's header. parseSTUN returns false if the datagram is not a STUN message.
func parseSTUN(datagram []byte) (stunMessage, bool) {
	ok := len(datagram) >= stunHeader && datagram[0] < 64 && binary.BigEndian.Uint32(datagram[4:]) == stunCookie &&
		int(binary.BigEndian.Uint16(datagram[2:])) == len(datagram)-stunHeader && len(datagram)%4 == 0
	return stunMessage(datagram), ok
}

// kind returns the method and class.
func (m stunMessage) kind() uint16 { return binary.BigEndian.Uint16(m) }

// transaction returns the transaction identifier.
func (m stunMessage) transaction() TransactionID { return TransactionID(m[8:stunHeader]) }

// addressee returns the ICE user name fragment of the agent that a request is for: the first part of USERNAME (RFC 8445
// section 7.2.2). The result is a slice of the message, empty if there is no USERNAME.
func (m stunMessage) addressee() []byte {
	for rest := m[stunHeader:]; len(rest) >= attributeHeader; {
		size := int(binary.BigEndian.Uint16(rest[2:]))
		if attributeHeader+size > len(rest) {
			return nil
		}
		if binary.BigEndian.Uint16(rest) == usernameType {
			ufrag, _, _ := bytes.Cut(rest[attributeHeader:attributeHeader+size], []byte{':'})
			return ufrag
		}
		// Attributes are padded to a multiple of four bytes.
		rest = rest[min(attributeHeader+(size+3)&^3, len(rest)):]
	}
	return nil
}
