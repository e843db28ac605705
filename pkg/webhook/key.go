package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrKey is the sentinel of an invalid key. The wrapping error has the reason, never the key.
var ErrKey = errors.New("invalid webhook key")

// Limits of a key in bytes, by the Standard Webhooks specification.
const (
	minKeyBytes = 24
	maxKeyBytes = 64
)

// keyMark is the prefix of the text of a key.
const keyMark = "whsec_"

// version is the version of a signature: HMAC-SHA256 by a shared key.
const version = "v1"

// Key is a key that a server and its receivers share.
type Key struct{ secret []byte }

// ParseKey parses a key in the form whsec_BASE64, with 24 to 64 bytes in standard base64. The prefix may be absent.
func ParseKey(text string) (Key, error) {
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, keyMark))
	if err != nil {
		return Key{}, fmt.Errorf("%w: expected %sBASE64 with standard base64", ErrKey, keyMark)
	}
	if len(secret) < minKeyBytes || len(secret) > maxKeyBytes {
		return Key{}, fmt.Errorf("%w: %d bytes, expected %d to %d", ErrKey, len(secret), minKeyBytes, maxKeyBytes)
	}
	return Key{secret}, nil
}

// String hides the key from logs.
func (k Key) String() string { return keyMark + "REDACTED" }

// GoString hides the key from logs.
func (k Key) GoString() string { return k.String() }

// Sign returns the signature of a body, as in the header webhook-signature, for the event id and the time of the
// delivery.
func (k Key) Sign(id string, at time.Time, body []byte) string {
	return version + "," + base64.StdEncoding.EncodeToString(k.sum(id, strconv.FormatInt(at.Unix(), 10), body))
}

// sum returns HMAC-SHA256 over the id, the time in seconds since 1970 and the body, separated by dots.
func (k Key) sum(id, seconds string, body []byte) []byte {
	mac := hmac.New(sha256.New, k.secret)
	for _, part := range [][]byte{[]byte(id), []byte("."), []byte(seconds), []byte("."), body} {
		_, _ = mac.Write(part)
	}
	return mac.Sum(nil)
}
