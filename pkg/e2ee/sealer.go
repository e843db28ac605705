package e2ee

import (
	"crypto/rand"
	"encoding/binary"
	"sync"

	"github.com/volsfu/volsfu/pkg/sframe"
)

// Overhead is the largest number of bytes by which encryption enlarges a frame or a packet.
const Overhead = sframe.Overhead

// suite is the cipher suite of the scheme.
const suite = sframe.AES256GCMSHA512

// A key identifier is the epoch, followed by sessionBits random bits that a sender chooses for each session. Key and
// salt are derived from the base key and the key identifier (RFC 9605 section 4.4.2), so two sessions of one
// participant never encrypt with the same key and nonce, although both count from 0. Of 1,000 sessions of one
// participant in one epoch, two choose the same bits with a probability of 1000²/2 / 2^48 = 2·10⁻⁹.
const sessionBits = 48

// keyID returns the key identifier of a session in an epoch.
func keyID(epoch Epoch, session uint64) uint64 { return uint64(epoch)<<sessionBits | session }

// epochOf returns the epoch of a key identifier.
func epochOf(kid uint64) Epoch { return Epoch(kid >> sessionBits) }

// Sealer encrypts what one participant sends in one session. Its methods are safe for concurrent use.
type Sealer struct {
	keys     *Keys
	identity string
	session  uint64

	mu sync.Mutex
	// counter is the counter of the next frame, in every epoch.
	counter uint64
	// key is derived from secret for epoch. It is nil before the first frame.
	key    *sframe.Key
	secret secret
	epoch  Epoch
}

// NewSealer returns the sealer of a new session.
func NewSealer(keys *Keys, identity string) *Sealer {
	var random [8]byte
	_, _ = rand.Read(random[:]) // It never fails (crypto/rand).
	return newSealer(keys, identity, binary.BigEndian.Uint64(random[:])>>(64-sessionBits))
}

func newSealer(keys *Keys, identity string, session uint64) *Sealer {
	return &Sealer{keys: keys, identity: identity, session: session}
}

// Seal appends the encrypted data of a subject to dst, at most Overhead bytes more than data. data must not overlap the
// memory behind dst. The error wraps ErrNoKey.
func (s *Sealer) Seal(dst []byte, about Subject, data []byte) ([]byte, error) {
	key, counter, err := s.next()
	if err != nil {
		return dst, err
	}
	return key.Seal(dst, counter, about.metadata(), data), nil
}

// next returns the key and the counter of the next frame.
func (s *Sealer) next() (*sframe.Key, uint64, error) {
	epoch, own, err := s.keys.outgoing(s.identity)
	if err != nil {
		return nil, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key == nil || s.epoch != epoch || !s.secret.equal(own) {
		s.key, s.secret, s.epoch = own.key(s.identity, keyID(epoch, s.session)), own, epoch
	}
	counter := s.counter
	s.counter++
	return s.key, counter, nil
}
