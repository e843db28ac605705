package webhook

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/volsfu/volsfu/pkg/webhook"
)

// ErrConfig is the sentinel of an invalid setting. The wrapping error has the setting and the expected value.
var ErrConfig = errors.New("invalid webhook configuration")

// maxEndpoints bounds the endpoints, each of which has a queue of its own: a backend, a second one, and a log.
const maxEndpoints = 8

// Config configures the endpoints.
type Config struct {
	// URLs: the server posts to any address that an operator configures, addresses of the own network included, and
	// follows no redirect.
	URLs []string `yaml:"urls" help:"addresses to which the events of rooms are posted; empty is off"`
	// KeyFile: requests are signed with every key, so that receivers may know only one of two while the key changes.
	KeyFile string `yaml:"key_file" help:"file with one signing key per line, as whsec_BASE64; needed with urls"`
}

// Validate returns an error that names the first wrong key. Validate does not read the key file.
func (c Config) Validate() error {
	if len(c.URLs) > maxEndpoints {
		return fmt.Errorf("%w: urls has %d addresses, expected at most %d", ErrConfig, len(c.URLs), maxEndpoints)
	}
	for i, text := range c.URLs {
		u, err := url.Parse(text)
		// The address is not shown, because its query or its user may be secret.
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil ||
			u.Fragment != "" {
			return fmt.Errorf("%w: address %d of urls is none of the form https://host[:port]/path, without a user",
				ErrConfig, i+1)
		}
	}
	if len(c.URLs) > 0 && c.KeyFile == "" {
		return fmt.Errorf("%w: urls has %d addresses and key_file is empty, expected a file with a key", ErrConfig,
			len(c.URLs))
	}
	return nil
}

const (
	// maxKeyFileBytes is far more than a file of maxKeys keys has.
	maxKeyFileBytes = 64 << 10
	// maxKeys bounds the signatures of a request: the present key and the next one, or a few receivers with keys of
	// their own. Receivers of package webhook read eight.
	maxKeys = 8
)

// readKeys reads the keys of a file. Empty lines and lines that begin with # are ignored. Errors contain no key.
func readKeys(path string) ([]webhook.Key, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read webhook keys: %w", err)
	}
	if info.Size() > maxKeyFileBytes {
		return nil, fmt.Errorf("%w: key_file %s has %d bytes, expected at most %d", ErrConfig, path, info.Size(),
			maxKeyFileBytes)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read webhook keys: %w", err)
	}
	var keys []webhook.Key
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, err := webhook.ParseKey(line)
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, number, err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 || len(keys) > maxKeys {
		return nil, fmt.Errorf("%w: key_file %s has %d keys, expected 1 to %d", ErrConfig, path, len(keys), maxKeys)
	}
	return keys, nil
}
