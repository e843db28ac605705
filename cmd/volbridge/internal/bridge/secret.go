package bridge

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
)

// datagramSecret is the type of the datagram with which a connector presents a secret. The type is followed by the
// secret's length in bytes, as a little-endian unsigned 32-bit number, and the secret.
const datagramSecret = 18

// The limits of a secret's length in bytes. 16 hexadecimal digits have 64 bits: at a million guesses per second, half
// of the values take 290,000 years.
const (
	MinSecret = 16
	MaxSecret = 128
)

// ErrSecret is returned for a secret of invalid length.
var ErrSecret = errors.New("invalid bridge secret")

// Secret is the secret that a connector must present. A Secret stores a hash, so that the length of the comparison does
// not depend on the secret.
type Secret struct{ sum [sha256.Size]byte }

// NewSecret returns a secret of MinSecret to MaxSecret bytes. For other lengths the error wraps ErrSecret.
func NewSecret(text string) (*Secret, error) {
	if len(text) < MinSecret || len(text) > MaxSecret {
		return nil, fmt.Errorf("%w: %d bytes, expected %d to %d", ErrSecret, len(text), MinSecret, MaxSecret)
	}
	return &Secret{sum: sha256.Sum256([]byte(text))}, nil
}

// equals compares in constant time.
func (s *Secret) equals(presented []byte) bool {
	sum := sha256.Sum256(presented)
	return subtle.ConstantTimeCompare(s.sum[:], sum[:]) == 1
}

// presentsSecret reports whether a datagram presents a secret.
func presentsSecret(datagram []byte) bool {
	return len(datagram) >= typeBytes && binary.LittleEndian.Uint32(datagram) == datagramSecret
}

// readSecret returns the secret in a datagram that presents one. readSecret returns false if the length does not fit
// the datagram or exceeds MaxSecret.
func readSecret(datagram []byte) (secret []byte, ok bool) {
	body := datagram[typeBytes:]
	if len(body) < 4 {
		return nil, false
	}
	length, rest := binary.LittleEndian.Uint32(body), body[4:]
	if length > MaxSecret || int(length) > len(rest) {
		return nil, false
	}
	return rest[:length], true
}
