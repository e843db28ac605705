package token

import (
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ErrKey is the sentinel of an invalid key. The wrapping error has the reason, never the secret.
var ErrKey = errors.New("invalid key")

// MinSecretBytes is the minimum length of a secret in bytes: a key of HS256 must be at least as long as its hash (RFC
// 7518, section 3.2).
const MinSecretBytes = 32

// Key is one secret and the name by which tokens refer to it.
type Key struct {
	id     string
	secret []byte
}

var keyID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// base64Mark is the prefix of a secret in base64. Without the prefix a secret is used literally.
const base64Mark = "base64:"

// ParseKey parses a key in the form KID:SECRET or KID:base64:DATA, as a line of a key file has it.
func ParseKey(line string) (Key, error) {
	id, text, found := strings.Cut(line, ":")
	if !found {
		return Key{}, fmt.Errorf("%w: expected KID:SECRET or KID:base64:DATA", ErrKey)
	}
	if !keyID.MatchString(id) {
		// The part before the colon may be a misplaced secret and must not be shown.
		return Key{}, fmt.Errorf("%w: the name before the colon has characters other than letters, digits, '.', '_' "+
			"and '-', or more than 64", ErrKey)
	}
	secret := []byte(text)
	if data, ok := strings.CutPrefix(text, base64Mark); ok {
		decoded, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			return Key{}, fmt.Errorf("%w %q: the secret is not standard base64", ErrKey, id)
		}
		secret = decoded
	}
	if len(secret) < MinSecretBytes {
		return Key{}, fmt.Errorf("%w %q: the secret has %d bytes, expected %d or more", ErrKey, id, len(secret),
			MinSecretBytes)
	}
	return Key{id: id, secret: secret}, nil
}

// ID returns the name of the key.
func (k Key) ID() string { return k.id }

// Secret returns the secret of the key, which the caller must not change.
func (k Key) Secret() []byte { return k.secret }

// String returns the name of the key, without the secret.
func (k Key) String() string { return k.id }

// GoString returns the name of the key, without the secret.
func (k Key) GoString() string { return k.id }
