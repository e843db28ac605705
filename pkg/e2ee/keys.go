package e2ee

import (
	"bytes"
	"crypto/hkdf"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/volsfu/volsfu/pkg/sframe"
)

// Scheme is the value of the key encryption of publications whose frames this package encrypts.
const Scheme = "sframe"

// MinSecret is the minimum size of a secret, in bytes. Secrets of 32 random bytes are recommended.
const MinSecret = 16

// ErrSecret is wrapped with the reason why a secret or an epoch cannot be used.
var ErrSecret = errors.New("unusable secret")

// Epoch numbers the secrets of a room. A room changes the epoch so that participants who have left cannot decrypt
// further frames.
type Epoch uint16

// Keys holds the secrets that a participant knows. A secret belongs to an epoch, and to one participant or to all. The
// methods are safe for concurrent use. The zero value has no secrets.
type Keys struct {
	mu      sync.RWMutex
	secrets map[owner]secret
	// sending is the epoch of outgoing frames if inUse is set.
	sending Epoch
	inUse   bool
}

// owner is the participant and the epoch of a secret. The identity is empty for a secret of all participants.
type owner struct {
	identity string
	epoch    Epoch
}

// SetSecret sets the secret of all participants for an epoch. Frames of the epoch can then be decrypted. The first
// secret is also used for sending; Use selects a later epoch. The error wraps ErrSecret.
func (k *Keys) SetSecret(epoch Epoch, secret []byte) error { return k.set(owner{epoch: epoch}, secret) }

// SetParticipantSecret sets the secret of one participant for an epoch. For this participant it replaces the secret of
// all participants. The error wraps ErrSecret.
func (k *Keys) SetParticipantSecret(identity string, epoch Epoch, secret []byte) error {
	if identity == "" {
		return fmt.Errorf("%w: the participant has no name", ErrSecret)
	}
	return k.set(owner{identity, epoch}, secret)
}

func (k *Keys) set(o owner, value []byte) error {
	if len(value) < MinSecret {
		return fmt.Errorf("%w: %d bytes, expected at least %d", ErrSecret, len(value), MinSecret)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.secrets == nil {
		k.secrets = make(map[owner]secret)
	}
	k.secrets[o] = bytes.Clone(value)
	if !k.inUse {
		k.sending, k.inUse = o.epoch, true
	}
	return nil
}

// Use selects the epoch of outgoing frames. The error wraps ErrSecret if there is no secret of the epoch.
func (k *Keys) Use(epoch Epoch) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.knows(epoch) {
		return fmt.Errorf("%w: there is no secret of epoch %d", ErrSecret, epoch)
	}
	k.sending, k.inUse = epoch, true
	return nil
}

// Forget removes the secrets of an epoch. Frames of the epoch are refused from then on. If the epoch is in use for
// sending, nothing can be sent until Use selects another one.
func (k *Keys) Forget(epoch Epoch) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.secrets, func(o owner, _ secret) bool { return o.epoch == epoch })
}

// knows reports whether there is a secret of an epoch. The caller holds the lock.
func (k *Keys) knows(epoch Epoch) bool {
	for o := range k.secrets {
		if o.epoch == epoch {
			return true
		}
	}
	return false
}

// outgoing returns the epoch of outgoing frames and the secret of the sender. The error wraps ErrNoKey.
func (k *Keys) outgoing(identity string) (Epoch, secret, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if !k.inUse {
		return 0, nil, fmt.Errorf("%w to encrypt with: no secret has been set", ErrNoKey)
	}
	own := k.of(identity, k.sending)
	if own == nil {
		return 0, nil, fmt.Errorf("%w to encrypt with: there is no secret of epoch %d for %q", ErrNoKey, k.sending,
			identity)
	}
	return k.sending, own, nil
}

// incoming returns the secret of a sender in an epoch. The error wraps ErrNoKey or ErrUnknownEpoch.
func (k *Keys) incoming(identity string, epoch Epoch) (secret, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if known := k.of(identity, epoch); known != nil {
		return known, nil
	}
	for o := range k.secrets {
		if o.identity == "" || o.identity == identity {
			return nil, fmt.Errorf("%w: %d", ErrUnknownEpoch, epoch)
		}
	}
	return nil, ErrNoKey
}

// of returns the secret of a participant in an epoch, nil if there is none. The caller holds the lock.
func (k *Keys) of(identity string, epoch Epoch) secret {
	if own := k.secrets[owner{identity, epoch}]; own != nil {
		return own
	}
	return k.secrets[owner{epoch: epoch}]
}

// secret is the secret of an epoch. It does not change.
type secret []byte

// equal reports whether both secrets are the same.
func (s secret) equal(other secret) bool { return subtle.ConstantTimeCompare(s, other) == 1 }

// baseLabel begins the information from which base keys are derived.
const baseLabel = "volsfu sframe 1 base key\x00"

// baseKey derives the base key of a participant in an epoch, in the sense of RFC 9605.
func (s secret) baseKey(identity string, epoch Epoch) []byte {
	info := binary.BigEndian.AppendUint16([]byte(baseLabel), uint16(epoch))
	key, err := hkdf.Key(sha512.New, s, nil, string(append(info, identity...)), 32)
	if err != nil {
		panic("HKDF with SHA-512 yields 32 bytes: " + err.Error())
	}
	return key
}

// key derives the key of a key identifier of a participant.
func (s secret) key(identity string, kid uint64) *sframe.Key {
	base := s.baseKey(identity, epochOf(kid))
	defer clear(base)
	key, err := sframe.NewKey(suite, kid, base)
	if err != nil {
		panic("every base key has an SFrame key: " + err.Error())
	}
	return key
}

// Parameters of secrets from passphrases: the iterations that OWASP recommends for PBKDF2 with HMAC-SHA-256 (Password
// Storage Cheat Sheet, 2023), and the label that begins the salt.
const (
	iterations      = 600_000
	passphraseLabel = "volsfu sframe 1 passphrase\x00"
)

// PassphraseSecret derives a secret from a passphrase and the name of the room by PBKDF2 with HMAC-SHA-256, which takes
// some tenths of a second. The error wraps ErrSecret if the passphrase is empty.
func PassphraseSecret(passphrase, room string) ([]byte, error) {
	if passphrase == "" {
		return nil, fmt.Errorf("%w: the passphrase is empty", ErrSecret)
	}
	secret, err := pbkdf2.Key(sha256.New, passphrase, []byte(passphraseLabel+room), iterations, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSecret, err)
	}
	return secret, nil
}
