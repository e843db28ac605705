package peer

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/e2ee"
)

// PassphraseVariable is the environment variable with the passphrase of end-to-end encryption. Other users of the host
// can read command lines, but not the environment.
const PassphraseVariable = "VOLPEER_PASSPHRASE"

// errKeyFile is wrapped with the defect of a key file.
var errKeyFile = errors.New("invalid key file")

const (
	// maxKeyFile bounds a key file: 4,096 secrets of 128 characters.
	maxKeyFile = 512 << 10
	// keyFileInterval is the time between two looks at the key file.
	keyFileInterval = time.Second
	// epochDelay is the time between reading a new epoch from the key file and sending with it, so that other
	// participants whose files change at the same time have read it, too.
	epochDelay = 2 * time.Second
)

// KeyFlags registers the flag of end-to-end encryption.
func (r *Room) KeyFlags(f *pflag.FlagSet) {
	f.StringVar(&r.KeyFile, "e2ee-key-file", "", "file with secrets for end-to-end encryption, one per line as "+
		"EPOCH:HEX with at least 32 hexadecimal digits, followed by an identity if the secret is of one participant; "+
		"read again when it changes. Instead of secrets, the environment variable "+PassphraseVariable+
		" can have a passphrase")
}

// Encrypts reports whether media is encrypted from end to end.
func (r *Room) Encrypts() bool { return r.KeyFile != "" || os.Getenv(PassphraseVariable) != "" }

// setKeys sets the keys of a session from the flags and the environment. Keys that the configuration has already are
// kept. They get the secret of the passphrase only once, since a later session must not restore an epoch that was
// forgotten.
func (r *Room) setKeys(config *client.Config) (*keyFile, error) {
	if config.Keys == nil || config.Keys != r.unlocked {
		config.Passphrase = os.Getenv(PassphraseVariable)
	}
	if r.KeyFile == "" {
		return nil, nil
	}
	if config.Passphrase != "" {
		return nil, fmt.Errorf("--e2ee-key-file and %s: expected at most one of them", PassphraseVariable)
	}
	if config.Keys == nil {
		config.Keys = new(e2ee.Keys)
	}
	file := &keyFile{path: r.KeyFile, keys: config.Keys}
	if _, err := file.read(); err != nil {
		return nil, fmt.Errorf("--e2ee-key-file: %w", err)
	}
	if err := file.keys.Use(file.highest()); err != nil {
		return nil, fmt.Errorf("--e2ee-key-file: %w", err)
	}
	return file, nil
}

// RecordedKeys returns the keys for the recording of a room from the flags and the environment, nil without keys.
func (r *Room) RecordedKeys(room string) (*e2ee.Keys, error) {
	if !r.Encrypts() {
		return nil, nil
	}
	config := client.Config{Keys: new(e2ee.Keys)}
	if _, err := r.setKeys(&config); err != nil {
		return nil, err
	}
	if config.Passphrase == "" {
		return config.Keys, nil
	}
	secret, err := e2ee.PassphraseSecret(config.Passphrase, room)
	if err != nil {
		return nil, err
	}
	return config.Keys, config.Keys.SetSecret(0, secret)
}

// keyFile is a file with secrets. It is owned by one goroutine.
type keyFile struct {
	path string
	keys *e2ee.Keys
	text []byte
	// epochs are the epochs of the file as read last.
	epochs map[e2ee.Epoch]bool
}

// read reads the file, and reports whether it has changed. Epochs that are no longer in the file are forgotten.
func (k *keyFile) read() (changed bool, err error) {
	file, err := os.Open(k.path)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxKeyFile+1))
	if err != nil {
		return false, err
	}
	if k.text != nil && bytes.Equal(text, k.text) {
		return false, nil
	}
	secrets, err := parseKeyFile(text)
	if err != nil {
		return false, fmt.Errorf("%s: %w", k.path, err)
	}
	epochs := make(map[e2ee.Epoch]bool)
	for _, s := range secrets {
		if err := s.set(k.keys); err != nil {
			return false, fmt.Errorf("%s: %w", k.path, err)
		}
		epochs[s.epoch] = true
	}
	for epoch := range k.epochs {
		if !epochs[epoch] {
			k.keys.Forget(epoch)
		}
	}
	k.text, k.epochs = text, epochs
	return true, nil
}

// highest returns the highest epoch of a file that was read.
func (k *keyFile) highest() e2ee.Epoch { return slices.Max(slices.Collect(maps.Keys(k.epochs))) }

// follow reads the file when it changes, until done is closed. Sending moves to the highest epoch after epochDelay.
func (k *keyFile) follow(done <-chan struct{}, log *slog.Logger) {
	ticker := time.NewTicker(keyFileInterval)
	defer ticker.Stop()
	sending := k.highest()
	var use <-chan time.Time
	failed := ""
	for {
		select {
		case <-ticker.C:
			changed, err := k.read()
			switch {
			case err != nil && err.Error() != failed:
				failed = err.Error()
				log.Warn("the key file cannot be used, the secrets read before remain", "error", err)
			case changed:
				failed = ""
				log.Info("secrets of end-to-end encryption read", "epochs", slices.Sorted(maps.Keys(k.epochs)))
				use = time.After(epochDelay)
			}
		case <-use:
			use = nil
			highest := k.highest()
			if highest == sending {
				continue
			}
			if err := k.keys.Use(highest); err != nil {
				log.Warn("the new epoch cannot be used", "error", err)
				continue
			}
			sending = highest
			log.Info("encrypting with another secret", "epoch", sending)
		case <-done:
			return
		}
	}
}

// keyLine is a line of a key file. The identity is empty for a secret of all participants.
type keyLine struct {
	epoch    e2ee.Epoch
	secret   []byte
	identity string
}

// errKeyLine is returned for a line that is not EPOCH:HEX.
var errKeyLine = fmt.Errorf("expected EPOCH:HEX with an epoch of 0 to 65535 and at least %d hexadecimal digits",
	2*e2ee.MinSecret)

// parseKeyLine parses EPOCH:HEX, with an identity behind a space if the secret is of one participant.
func parseKeyLine(line string) (keyLine, error) {
	key, identity, _ := strings.Cut(line, " ")
	epoch, digits, _ := strings.Cut(key, ":")
	parsed, err := strconv.ParseUint(epoch, 10, 16)
	secret, bad := hex.DecodeString(digits)
	if err != nil || bad != nil || len(secret) < e2ee.MinSecret {
		return keyLine{}, errKeyLine
	}
	return keyLine{e2ee.Epoch(parsed), secret, strings.TrimSpace(identity)}, nil
}

// set sets the secret of the line.
func (l keyLine) set(keys *e2ee.Keys) error {
	if l.identity == "" {
		return keys.SetSecret(l.epoch, l.secret)
	}
	return keys.SetParticipantSecret(l.identity, l.epoch, l.secret)
}

// parseKeyFile parses the text of a key file: EPOCH:HEX [IDENTITY] on each line, and comments that begin with #. Errors
// do not contain secrets.
func parseKeyFile(text []byte) ([]keyLine, error) {
	if len(text) > maxKeyFile {
		return nil, fmt.Errorf("%w: more than %d bytes", errKeyFile, maxKeyFile)
	}
	var lines []keyLine
	scanner := bufio.NewScanner(bytes.NewReader(text))
	for number := 1; scanner.Scan(); number++ {
		line := strings.TrimSpace(scanner.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parsed, err := parseKeyLine(line)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", errKeyFile, number, err)
		}
		lines = append(lines, parsed)
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", errKeyFile, err)
	}
	if len(lines) == 0 {
		// A program may be about to write the file. Secrets that were read before must not be forgotten then.
		return nil, fmt.Errorf("%w: there is no secret", errKeyFile)
	}
	return lines, nil
}
