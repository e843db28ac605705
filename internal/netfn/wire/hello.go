package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// ErrHello is the error of a hello's body that cannot be decoded.
var ErrHello = errors.New("malformed hello")

// maxHelloRules is the number of rules that flow numbers can name.
const maxHelloRules = 16

// Hello is the body of a hello. Integers are big-endian: epoch (2 bytes), send time (4), number of rules (1), and for
// each rule its deadline in ms (2 bytes).
type Hello struct {
	// Epoch is that of the sender's data.
	Epoch uint16
	// Sent is the send time on the clock of the data headers: µs modulo 2^32.
	Sent uint32
	// Deadlines are those of the rules, by index. A deadline is a whole number of ms, at most 65.535 s.
	Deadlines []time.Duration
}

// AppendBinary appends the encoded hello to b.
func (h *Hello) AppendBinary(b []byte) ([]byte, error) {
	if len(h.Deadlines) > maxHelloRules {
		return b, fmt.Errorf("a hello for %d rules, the limit is %d", len(h.Deadlines), maxHelloRules)
	}
	b = binary.BigEndian.AppendUint16(b, h.Epoch)
	b = binary.BigEndian.AppendUint32(b, h.Sent)
	b = append(b, uint8(len(h.Deadlines)))
	for _, d := range h.Deadlines {
		b = binary.BigEndian.AppendUint16(b, uint16(d/time.Millisecond))
	}
	return b, nil
}

// UnmarshalBinary decodes a hello. The error wraps ErrHello.
func (h *Hello) UnmarshalBinary(b []byte) error {
	if len(b) < 7 || int(b[6]) > maxHelloRules || len(b) != 7+2*int(b[6]) {
		return fmt.Errorf("%w: %d bytes", ErrHello, len(b))
	}
	*h = Hello{Epoch: binary.BigEndian.Uint16(b), Sent: binary.BigEndian.Uint32(b[2:])}
	for at := 7; at < len(b); at += 2 {
		h.Deadlines = append(h.Deadlines, time.Duration(binary.BigEndian.Uint16(b[at:]))*time.Millisecond)
	}
	return nil
}
