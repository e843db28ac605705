package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// Control messages begin as the data header does, so that the receiver's program separates both by the first byte.
// Integers are big-endian.
//
//	 0   version (high 4 bits), kind (low 4 bits)
//	 1   path on which the message leaves
//	 2   bit 0: direction; bit 1: closing; bit 2: answer
//	 3   0
//	 4   run of the edge that sends the message (8 bytes)
//	12   counter of the message within run and path (4 bytes)
//	16   time since the start of the run, in ms modulo 2^32 (4 bytes)
//	20   run of the other edge, as last received, or 0 (8 bytes)
//	28   time of the other edge, as last received (4 bytes)
//	32   length of the body (2 bytes)
//	34   body
//	     HMAC-SHA256 of everything before, truncated to 16 bytes
const (
	// KindHello is a message of a sender edge to a receiver edge.
	KindHello = 8
	// KindReport is a message of a receiver edge to a sender edge.
	KindReport = 9

	controlHeader = 34
	controlMAC    = 16

	flagDirection = 1
	flagClosing   = 2
	flagAnswer    = 4

	// MaxControlBody is the longest body in bytes. With the header, the authentication code and 48 bytes of IPv6 and
	// UDP, a message has at most 1,122 bytes, so that it is not fragmented on any path of IPv6 (1,280 bytes).
	MaxControlBody = 1024
)

// Errors of ParseControl.
var (
	ErrControlMalformed = errors.New("malformed control message")
	ErrControlReflected = errors.New("control message of this edge, sent back")
	ErrControlForged    = errors.New("control message with a wrong authentication code")
)

// Control is a control message: a hello or a report.
type Control struct {
	Kind uint8
	Path uint8
	// Run is a random number that an edge draws at its start.
	Run uint64
	// Counter is above 0 and increases by 1 with each message of the run on the path.
	Counter uint32
	// Time is the time since the start of the run, in ms modulo 2^32.
	Time uint32
	// EchoRun and EchoTime are Run and Time of a recent message of the other edge. EchoRun is 0 before the first one.
	EchoRun  uint64
	EchoTime uint32
	// Closing reports whether the edge is about to leave.
	Closing bool
	// Answer reports whether the edge does not believe EchoRun yet: the message only tells what to echo.
	Answer bool
	// Body is at most MaxControlBody bytes.
	Body []byte
}

// Keys authenticate the control messages of a pair of edges, in both directions.
type Keys struct {
	send, receive []byte
	// direction is the direction bit of the messages that this edge sends.
	direction uint8
}

// NewKeys derives the keys of the two directions from the pair's key and the names of the edges, so that a message is
// valid only from one edge to the other. The direction bit is 0 from the name that sorts first. The names must differ.
func NewKeys(key []byte, name, peer string) Keys {
	k := Keys{send: deriveKey(key, name, peer), receive: deriveKey(key, peer, name)}
	if name > peer {
		k.direction = 1
	}
	return k
}

// deriveKey returns the key of messages from one edge to another. The length before the first name separates the names.
func deriveKey(key []byte, from, to string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(binary.BigEndian.AppendUint16([]byte("volnet control v1"), uint16(len(from))))
	mac.Write([]byte(from))
	mac.Write([]byte(to))
	return mac.Sum(nil)
}

// AppendControl appends the encoded and authenticated message to b.
func (k Keys) AppendControl(b []byte, m Control) ([]byte, error) {
	if len(m.Body) > MaxControlBody {
		return b, fmt.Errorf("the body of a control message has %d bytes, the limit is %d", len(m.Body),
			MaxControlBody)
	}
	start := len(b)
	flags := k.direction
	if m.Closing {
		flags |= flagClosing
	}
	if m.Answer {
		flags |= flagAnswer
	}
	b = append(b, HeaderVersion<<4|m.Kind, m.Path, flags, 0)
	b = binary.BigEndian.AppendUint64(b, m.Run)
	b = binary.BigEndian.AppendUint32(b, m.Counter)
	b = binary.BigEndian.AppendUint32(b, m.Time)
	b = binary.BigEndian.AppendUint64(b, m.EchoRun)
	b = binary.BigEndian.AppendUint32(b, m.EchoTime)
	b = binary.BigEndian.AppendUint16(b, uint16(len(m.Body)))
	b = append(b, m.Body...)
	return append(b, authenticate(k.send, b[start:])...), nil
}

// ParseControl decodes a message of the other edge. The body refers to data. The error wraps ErrControlMalformed,
// ErrControlReflected or ErrControlForged.
func (k Keys) ParseControl(data []byte) (Control, error) {
	if len(data) < controlHeader+controlMAC {
		return Control{}, fmt.Errorf("%w: %d bytes, the shortest message has %d", ErrControlMalformed, len(data),
			controlHeader+controlMAC)
	}
	version, kind := data[0]>>4, data[0]&15
	body := int(binary.BigEndian.Uint16(data[32:]))
	switch {
	case version != HeaderVersion:
		return Control{}, fmt.Errorf("%w: version %d, expected %d", ErrControlMalformed, version, HeaderVersion)
	case kind != KindHello && kind != KindReport:
		return Control{}, fmt.Errorf("%w: kind %d", ErrControlMalformed, kind)
	case data[1] >= MaxPaths:
		return Control{}, fmt.Errorf("%w: path %d, the limit is %d", ErrControlMalformed, data[1], MaxPaths-1)
	case data[2] > flagDirection|flagClosing|flagAnswer || data[3] != 0:
		return Control{}, fmt.Errorf("%w: reserved bits are set", ErrControlMalformed)
	case body > MaxControlBody || controlHeader+body+controlMAC != len(data):
		return Control{}, fmt.Errorf("%w: a body of %d bytes in a message of %d", ErrControlMalformed, body, len(data))
	}
	signed, code := data[:controlHeader+body], data[controlHeader+body:]
	if data[2]&flagDirection == k.direction {
		if hmac.Equal(code, authenticate(k.send, signed)) {
			return Control{}, ErrControlReflected
		}
		return Control{}, ErrControlForged
	}
	if !hmac.Equal(code, authenticate(k.receive, signed)) {
		return Control{}, ErrControlForged
	}
	return Control{
		Kind:     kind,
		Path:     data[1],
		Run:      binary.BigEndian.Uint64(data[4:]),
		Counter:  binary.BigEndian.Uint32(data[12:]),
		Time:     binary.BigEndian.Uint32(data[16:]),
		EchoRun:  binary.BigEndian.Uint64(data[20:]),
		EchoTime: binary.BigEndian.Uint32(data[28:]),
		Closing:  data[2]&flagClosing != 0,
		Answer:   data[2]&flagAnswer != 0,
		Body:     data[controlHeader : controlHeader+body],
	}, nil
}

// authenticate returns the truncated HMAC-SHA256 (RFC 2104, section 5).
func authenticate(key, data []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(data)
	return mac.Sum(nil)[:controlMAC]
}
