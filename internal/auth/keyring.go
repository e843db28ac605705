package auth

import (
	"encoding/base64"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// MinSecretBytes is the minimum length of a secret in bytes: a key of HS256 must be at least as long as its hash (RFC
// 7518, section 3.2).
const MinSecretBytes = 32

// key is one secret and the name by which tokens refer to it.
type key struct {
	id     string
	secret []byte
}

// Keyring holds the keys of one server.
type Keyring struct {
	keys   []key
	leeway time.Duration
}

// NewKeyring returns the keys of the configuration and of its key file. It is an error to have none.
func NewKeyring(config Config) (*Keyring, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	lines := config.Keys
	if config.KeyFile != "" {
		fromFile, err := readKeyFile(config.KeyFile)
		if err != nil {
			return nil, err
		}
		lines = slices.Concat(lines, fromFile)
	}
	keys, err := parseKeys(lines)
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: there is none, expected at least one in keys or key_file", ErrKey)
	}
	return &Keyring{keys: keys, leeway: config.Leeway}, nil
}

// KeyIDs returns the names of the keys, the minting one first.
func (r *Keyring) KeyIDs() []string {
	ids := make([]string, 0, len(r.keys))
	for _, k := range r.keys {
		ids = append(ids, k.id)
	}
	return ids
}

// secret returns the secret of a key; no key has an empty name.
func (r *Keyring) secret(id string) ([]byte, bool) {
	for _, k := range r.keys {
		if k.id == id {
			return k.secret, true
		}
	}
	return nil, false
}

// maxKeyFileBytes is a thousand keys of a kilobyte each.
const maxKeyFileBytes = 1 << 20

func readKeyFile(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read key file: %w", err)
	}
	if info.Size() > maxKeyFileBytes {
		return nil, fmt.Errorf("%w file %s: %d bytes, expected at most %d", ErrKey, path, info.Size(), maxKeyFileBytes)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read key file: %w", err)
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

func parseKeys(lines []string) ([]key, error) {
	keys := make([]key, 0, len(lines))
	for i, line := range lines {
		k, err := parseKey(line)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		if slices.ContainsFunc(keys, func(other key) bool { return other.id == k.id }) {
			return nil, fmt.Errorf("%w: two keys are named %q", ErrKey, k.id)
		}
		keys = append(keys, k)
	}
	return keys, nil
}

var keyID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// base64Mark is the prefix of a secret in base64. Without the prefix a secret is used literally.
const base64Mark = "base64:"

func parseKey(line string) (key, error) {
	id, text, found := strings.Cut(line, ":")
	if !found {
		return key{}, fmt.Errorf("%w: expected KID:SECRET or KID:base64:DATA", ErrKey)
	}
	if !keyID.MatchString(id) {
		// The part before the colon may be a misplaced secret and must not be shown.
		return key{}, fmt.Errorf("%w: the name before the colon has characters other than letters, digits, '.', '_' "+
			"and '-', or more than 64", ErrKey)
	}
	secret := []byte(text)
	if data, ok := strings.CutPrefix(text, base64Mark); ok {
		decoded, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			return key{}, fmt.Errorf("%w %q: the secret is not standard base64", ErrKey, id)
		}
		secret = decoded
	}
	if len(secret) < MinSecretBytes {
		return key{}, fmt.Errorf("%w %q: the secret has %d bytes, expected %d or more", ErrKey, id, len(secret),
			MinSecretBytes)
	}
	return key{id: id, secret: secret}, nil
}
