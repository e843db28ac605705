package auth

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/volsfu/volsfu/pkg/token"
)

// MinSecretBytes is the minimum length of a secret in bytes.
const MinSecretBytes = token.MinSecretBytes

// Keyring holds the keys of one server.
type Keyring struct {
	keys   []token.Key
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
		ids = append(ids, k.ID())
	}
	return ids
}

// key returns the key of that name; no key has an empty name.
func (r *Keyring) key(id string) (token.Key, bool) {
	for _, k := range r.keys {
		if k.ID() == id {
			return k, true
		}
	}
	return token.Key{}, false
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

func parseKeys(lines []string) ([]token.Key, error) {
	keys := make([]token.Key, 0, len(lines))
	for i, line := range lines {
		k, err := token.ParseKey(line)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		if slices.ContainsFunc(keys, func(other token.Key) bool { return other.ID() == k.ID() }) {
			return nil, fmt.Errorf("%w: two keys are named %q", ErrKey, k.ID())
		}
		keys = append(keys, k)
	}
	return keys, nil
}
