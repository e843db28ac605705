// Package ticket seals the rights of clients to continue a session, or to join a room, on any node of a cluster.
//
// A ticket is base64url text without padding. Its bytes are
//
//	1      version, 1
//	4      identifier of the key: the first bytes of its SHA-256
//	12     nonce, random
//	n + 16 sealed content and tag of AES-256-GCM (NIST SP 800-38D); the bytes before it are the associated data
//
// The content is a sequence of fields in fixed order. Texts have two bytes of length, numbers are big-endian. With
// random nonces, a key may seal 2³² tickets (NIST SP 800-38D, section 8.3).
package ticket

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrInvalid is wrapped by every error about a ticket.
var ErrInvalid = errors.New("invalid ticket")

// Kind is the use of a ticket.
type Kind byte

// The kinds of tickets.
const (
	// Resume continues a session.
	Resume Kind = 1
	// Entry joins a room on a node without being moved again.
	Entry Kind = 2
)

// Grants are the rights of a participant as bits.
type Grants byte

// The rights.
const (
	Publish Grants = 1 << iota
	Subscribe
	Data
	Admin
)

// KeyBytes is the length of a key.
const KeyBytes = 32

const (
	version    = 1
	idBytes    = 4
	nonceBytes = 12
	head       = 1 + idBytes + nonceBytes
	// maxText bounds a text: a name has at most 128 bytes, a secret 26.
	maxText = 128
	// maxBytes bounds a ticket: two bytes, five texts, three numbers and the tag of 16 bytes.
	maxBytes = head + 2 + 5*(2+maxText) + 3*8 + 16
)

// MaxLength is the maximum length of a ticket's text.
const MaxLength = (maxBytes*4 + 2) / 3

// Ticket is the content of a ticket.
type Ticket struct {
	Kind Kind
	// Session is empty in a ticket for an entry.
	Session string
	// Secret is the present secret of the session on its home node.
	Secret         string
	Room, Identity string
	Grants         Grants
	// Home is the node that has the session, or that an entry leads to. Incarnation is its start.
	Home        string
	Incarnation uint64
	// Epoch counts the homes of the session.
	Epoch uint64
	// Expires has a resolution of seconds.
	Expires time.Time
}

// Sealer seals and opens tickets. The methods are safe for concurrent use.
type Sealer struct {
	mu sync.RWMutex
	// keys are the present key and the former key.
	keys []key
}

// key is a key of the cluster.
type key struct {
	id   [idBytes]byte
	aead cipher.AEAD
}

// NewSealer returns a sealer with the key of a cluster.
func NewSealer(secret []byte) (*Sealer, error) {
	s := &Sealer{}
	return s, s.Rotate(secret)
}

// Rotate sets the key that seals tickets. Tickets of the key before remain valid until the next rotation. A repeated
// key changes nothing.
func (s *Sealer) Rotate(secret []byte) error {
	if len(secret) != KeyBytes {
		return fmt.Errorf("a ticket key has %d bytes, expected %d", len(secret), KeyBytes)
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(secret)
	next := key{[idBytes]byte(sum[:idBytes]), aead}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(s.keys) == 0:
		s.keys = []key{next}
	case s.keys[0].id != next.id:
		s.keys = []key{next, s.keys[0]}
	}
	return nil
}

// Seal returns the text of a ticket. The error names a text that is too long.
func (s *Sealer) Seal(t Ticket) (string, error) {
	content := []byte{byte(t.Kind), byte(t.Grants)}
	for _, text := range []string{t.Session, t.Secret, t.Room, t.Identity, t.Home} {
		if len(text) > maxText {
			return "", fmt.Errorf("%w: a text of %d bytes, expected at most %d", ErrInvalid, len(text), maxText)
		}
		content = binary.BigEndian.AppendUint16(content, uint16(len(text)))
		content = append(content, text...)
	}
	for _, number := range []uint64{t.Incarnation, t.Epoch, uint64(t.Expires.Unix())} {
		content = binary.BigEndian.AppendUint64(content, number)
	}
	s.mu.RLock()
	present := s.keys[0]
	s.mu.RUnlock()
	sealed := append(make([]byte, 0, head+len(content)+present.aead.Overhead()), version)
	sealed = append(sealed, present.id[:]...)
	sealed = sealed[:head]
	nonce := sealed[1+idBytes:]
	if _, err := rand.Read(nonce); err != nil {
		return "", err
	}
	sealed = present.aead.Seal(sealed, nonce, content, sealed)
	return base64.RawURLEncoding.EncodeToString(sealed), nil
}

// Open returns the content of a ticket that a node of the cluster has sealed. The error wraps ErrInvalid.
func (s *Sealer) Open(text string, now time.Time) (Ticket, error) {
	if len(text) > MaxLength {
		return Ticket{}, fmt.Errorf("%w: %d bytes, expected at most %d", ErrInvalid, len(text), MaxLength)
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(sealed) < head || sealed[0] != version {
		return Ticket{}, fmt.Errorf("%w: not a ticket of version %d", ErrInvalid, version)
	}
	aead := s.aead([idBytes]byte(sealed[1:]))
	if aead == nil {
		return Ticket{}, fmt.Errorf("%w: sealed with a key that this cluster does not have", ErrInvalid)
	}
	content, err := aead.Open(nil, sealed[1+idBytes:head], sealed[head:], sealed[:head])
	if err != nil {
		return Ticket{}, fmt.Errorf("%w: not sealed by a node of this cluster", ErrInvalid)
	}
	t, ok := parse(content)
	if !ok {
		return Ticket{}, fmt.Errorf("%w: incomplete content", ErrInvalid)
	}
	if !now.Before(t.Expires) {
		return Ticket{}, fmt.Errorf("%w: expired %v ago", ErrInvalid, now.Sub(t.Expires).Round(time.Second))
	}
	return t, nil
}

// aead returns the cipher of a key, nil if the key is not known.
func (s *Sealer) aead(id [idBytes]byte) cipher.AEAD {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, k := range s.keys {
		if k.id == id {
			return k.aead
		}
	}
	return nil
}

// parse reads the content of a ticket. Bytes after the known fields are ignored: a later version may add fields.
func parse(content []byte) (t Ticket, ok bool) {
	if len(content) < 2 {
		return t, false
	}
	t.Kind, t.Grants, content = Kind(content[0]), Grants(content[1]), content[2:]
	for _, text := range []*string{&t.Session, &t.Secret, &t.Room, &t.Identity, &t.Home} {
		if len(content) < 2 {
			return t, false
		}
		n := int(binary.BigEndian.Uint16(content))
		if content = content[2:]; n > maxText || len(content) < n {
			return t, false
		}
		*text, content = string(content[:n]), content[n:]
	}
	var expires uint64
	for _, number := range []*uint64{&t.Incarnation, &t.Epoch, &expires} {
		if len(content) < 8 {
			return t, false
		}
		*number, content = binary.BigEndian.Uint64(content), content[8:]
	}
	t.Expires = time.Unix(int64(expires), 0)
	return t, true
}
