package bridge

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
)

// datagramSecret is the type of the datagram with which a connector presents a secret. After the type follow the
// secret's length in bytes, as a little-endian unsigned number of 32 bits, and the secret.
const datagramSecret = 18

// The bounds of a secret in bytes. 16 hexadecimal digits have 64 bits: at a million guesses per second half of them
// take 290,000 years.
const (
	MinSecret = 16
	MaxSecret = 128
)

// ErrSecret says that a secret is too short or too long.
var ErrSecret = errors.New("bad bridge secret")

// Secret is what a connector has to present before the bridge listens to it. It keeps a hash, whose length does not
// depend on the secret's.
type Secret struct{ sum [sha256.Size]byte }

// NewSecret takes a secret of MinSecret to MaxSecret bytes. Other lengths give an error around ErrSecret.
func NewSecret(text string) (*Secret, error) {
	if len(text) < MinSecret || len(text) > MaxSecret {
		return nil, fmt.Errorf("%w: it has %d bytes, expected %d to %d", ErrSecret, len(text), MinSecret, MaxSecret)
	}
	return &Secret{sum: sha256.Sum256([]byte(text))}, nil
}

// equals compares in a time that does not depend on where the two differ.
func (s *Secret) equals(presented []byte) bool {
	sum := sha256.Sum256(presented)
	return subtle.ConstantTimeCompare(s.sum[:], sum[:]) == 1
}

// presentsSecret reports whether a datagram presents a secret.
func presentsSecret(datagram []byte) bool {
	return len(datagram) >= typeBytes && binary.LittleEndian.Uint32(datagram) == datagramSecret
}

// readSecret returns the secret in a datagram that presents one. It is false if the length does not fit the datagram or
// exceeds MaxSecret.
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
