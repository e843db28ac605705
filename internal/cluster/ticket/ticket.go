// Package ticket seals the rights of clients to continue a session, or to join a room, on any node of a cluster.
//
// A ticket is base64url text without padding. Its bytes are
//
//	1      version, 1
//	4      hour of the key, in hours of UTC since 1970
//	12     nonce, random
//	n + 16 sealed content and tag of AES-256-GCM (NIST SP 800-38D); the bytes before it are the associated data
//
// The content is a sequence of fields in fixed order. Texts have two bytes of length, numbers are big-endian.
//
// Every hour has a key, which each node derives from the secret of the cluster by HKDF-SHA256 (RFC 5869) with the info
// "volsfu ticket" and the hour. The nodes need no message for a new key. With random nonces, a key may seal 2³² tickets
// (NIST SP 800-38D, section 8.3).
package ticket

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
)

// ErrInvalid is wrapped by every error about a ticket.
var ErrInvalid = errors.New("invalid ticket")

// ErrExpired is wrapped, together with ErrInvalid, by the error about an expired ticket.
var ErrExpired = errors.New("expired")

// ErrSecret is wrapped with the length of an invalid secret.
var ErrSecret = errors.New("invalid secret of a cluster")

// Kind is the use of a ticket.
type Kind byte

// The kinds of tickets.
const (
	// Resume continues a session.
	Resume Kind = 1
	// Entry joins a room on a node without being moved again.
	Entry Kind = 2
	// Move continues a session on the node that the ticket names, although the session's home is alive.
	Move Kind = 3
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

// SecretBytes is the length of the secret of a cluster.
const SecretBytes = 32

// Lifetime is the validity of a ticket for a resume. A session that lasts longer gets further tickets.
const Lifetime = 24 * time.Hour

const (
	version    = 1
	hourBytes  = 4
	nonceBytes = 12
	head       = 1 + hourBytes + nonceBytes
	keyBytes   = 32
	// formerHours is the number of former hours whose keys are kept, laterHours that of later hours whose keys open
	// tickets: the clocks of nodes differ.
	formerHours = uint32(Lifetime / time.Hour)
	laterHours  = 1
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
	// Home is the node that has the session, or to which an entry or a move leads. Incarnation is its start.
	Home        string
	Incarnation uint64
	// Epoch counts the homes of the session.
	Epoch uint64
	// Expires has a resolution of seconds.
	Expires time.Time
}

// Sealer seals and opens tickets. The methods are safe for concurrent use.
type Sealer struct {
	mu sync.Mutex
	// secrets are the present secret and the former one.
	secrets []*secret
}

// secret is a secret of the cluster with the keys that have been derived from the secret, by hour.
type secret struct {
	text []byte
	keys map[uint32]cipher.AEAD
}

// NewSealer returns a sealer with the secret of a cluster. The error wraps ErrSecret.
func NewSealer(text []byte) (*Sealer, error) {
	s := &Sealer{}
	return s, s.SetSecret(text)
}

// SetSecret sets the secret whose keys seal tickets. Tickets of the secret before remain valid until the next change. A
// repeated secret changes nothing. The error wraps ErrSecret.
func (s *Sealer) SetSecret(text []byte) error {
	if len(text) != SecretBytes {
		return fmt.Errorf("%w: %d bytes, expected %d", ErrSecret, len(text), SecretBytes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.secrets) > 0 && bytes.Equal(s.secrets[0].text, text) {
		return nil
	}
	next := &secret{text: bytes.Clone(text), keys: make(map[uint32]cipher.AEAD)}
	s.secrets = append([]*secret{next}, s.secrets[:min(1, len(s.secrets))]...)
	return nil
}

// hourOf returns the number of the hour of a time.
func hourOf(t time.Time) uint32 { return uint32(t.Unix() / int64(time.Hour/time.Second)) }

// key returns the cipher of an hour, which is derived if necessary. now is the present hour. The keys of hours before
// formerHours are not kept.
func (s *secret) key(hour, now uint32) (cipher.AEAD, error) {
	if aead := s.keys[hour]; aead != nil {
		return aead, nil
	}
	maps.DeleteFunc(s.keys, func(hour uint32, _ cipher.AEAD) bool { return !accepted(hour, now) })
	info := binary.BigEndian.AppendUint32([]byte("volsfu ticket"), hour)
	text, err := hkdf.Key(sha256.New, s.text, nil, string(info), keyBytes)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(text)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err == nil && accepted(hour, now) {
		s.keys[hour] = aead
	}
	return aead, err
}

// accepted reports whether tickets of an hour may be valid in the hour now.
func accepted(hour, now uint32) bool { return hour+formerHours >= now && hour <= now+laterHours }

// keys returns the ciphers of an hour: that of the present secret and, if there is one, that of the former secret.
func (s *Sealer) keys(hour, now uint32) ([]cipher.AEAD, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []cipher.AEAD
	for _, secret := range s.secrets {
		aead, err := secret.key(hour, now)
		if err != nil {
			return nil, err
		}
		list = append(list, aead)
	}
	return list, nil
}

// Seal returns the text of a ticket, with the key of the present hour. The error names a text that is too long.
func (s *Sealer) Seal(t Ticket, now time.Time) (string, error) {
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
	hour := hourOf(now)
	keys, err := s.keys(hour, hour)
	if err != nil {
		return "", err
	}
	sealed := append(make([]byte, 0, head+len(content)+keys[0].Overhead()), version)
	sealed = binary.BigEndian.AppendUint32(sealed, hour)
	sealed = sealed[:head]
	nonce := sealed[1+hourBytes:]
	if _, err := rand.Read(nonce); err != nil {
		return "", err
	}
	sealed = keys[0].Seal(sealed, nonce, content, sealed)
	return base64.RawURLEncoding.EncodeToString(sealed), nil
}

// Open returns the content of a ticket that a node of the cluster has sealed. The error wraps ErrInvalid. With an error
// that wraps ErrExpired, too, the content is that of an expired ticket.
func (s *Sealer) Open(text string, now time.Time) (Ticket, error) {
	if len(text) > MaxLength {
		return Ticket{}, fmt.Errorf("%w: %d bytes, expected at most %d", ErrInvalid, len(text), MaxLength)
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(sealed) < head || sealed[0] != version {
		return Ticket{}, fmt.Errorf("%w: not a ticket of version %d", ErrInvalid, version)
	}
	content, err := s.open(sealed, hourOf(now))
	if err != nil {
		return Ticket{}, err
	}
	t, ok := parse(content)
	if !ok {
		return Ticket{}, fmt.Errorf("%w: incomplete content", ErrInvalid)
	}
	switch {
	case !now.Before(t.Expires):
		return t, fmt.Errorf("%w: %w %v ago", ErrInvalid, ErrExpired, now.Sub(t.Expires).Round(time.Second))
	case !accepted(binary.BigEndian.Uint32(sealed[1:]), hourOf(now)):
		return t, fmt.Errorf("%w: %w: the key of its hour is not valid", ErrInvalid, ErrExpired)
	}
	return t, nil
}

// open returns the content of a sealed ticket. now is the present hour.
func (s *Sealer) open(sealed []byte, now uint32) ([]byte, error) {
	hour := binary.BigEndian.Uint32(sealed[1:])
	if hour > now+laterHours {
		return nil, fmt.Errorf("%w: the key of its hour is not valid yet", ErrInvalid)
	}
	keys, err := s.keys(hour, now)
	if err != nil {
		return nil, err
	}
	for _, aead := range keys {
		if content, err := aead.Open(nil, sealed[1+hourBytes:head], sealed[head:], sealed[:head]); err == nil {
			return content, nil
		}
	}
	return nil, fmt.Errorf("%w: not sealed by a node of this cluster", ErrInvalid)
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
