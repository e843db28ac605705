package peer

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/e2ee"
)

const (
	firstKey  = "0:00112233445566778899aabbccddeeff"
	secondKey = "1:ffeeddccbbaa99887766554433221100"
)

func TestKeyFiles(t *testing.T) {
	lines, err := parseKeyFile([]byte("# the lab\n" + firstKey + "\n\n " + secondKey + " Zoë B\r\n"))
	if err != nil || len(lines) != 2 || lines[0].epoch != 0 || lines[0].identity != "" || lines[1].epoch != 1 ||
		lines[1].identity != "Zoë B" || !bytes.HasPrefix(lines[1].secret, []byte{0xff, 0xee}) {
		t.Errorf("got %+v, %v", lines, err)
	}
	for _, text := range []string{
		"x", "0:0011", "0 00112233445566778899aabbccddeeff", "65536:00112233445566778899aabbccddeeff",
		"-1:00112233445566778899aabbccddeeff", "0:00112233445566778899aabbccddeeffg0",
		"0:" + strings.Repeat("00", maxKeyFile),
	} {
		_, err := parseKeyFile([]byte(text))
		if !errors.Is(err, errKeyFile) || strings.Contains(err.Error(), "2233") {
			t.Errorf("%.40q: error is %v, expected errKeyFile without the secret", text, err)
		}
	}
}

// writeKeys writes a file, or replaces it at once.
func writeKeys(t *testing.T, path string, lines ...string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestKeysOfARoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	writeKeys(t, path, firstKey)
	t.Setenv(PassphraseVariable, "")
	var config client.Config
	file, err := (&Room{KeyFile: path}).setKeys(&config)
	if err != nil || file == nil || config.Keys == nil {
		t.Fatalf("got %v, %v", config.Keys, err)
	}
	sealer := e2ee.NewSealer(config.Keys, "alice")
	if _, err := sealer.Seal(nil, e2ee.Subject{}, nil); err != nil {
		t.Error(err)
	}
	for name, lines := range map[string][]string{"absent": nil, "empty": {""}, "invalid": {"secret"}} {
		other := filepath.Join(t.TempDir(), name)
		if lines != nil {
			writeKeys(t, other, lines...)
		}
		if _, err := (&Room{KeyFile: other}).setKeys(new(client.Config)); err == nil {
			t.Errorf("the %s file is accepted", name)
		}
	}
	t.Setenv(PassphraseVariable, "correct horse")
	if _, err := (&Room{KeyFile: path}).setKeys(new(client.Config)); err == nil {
		t.Error("a key file and a passphrase are accepted")
	}
	config = client.Config{}
	if _, err := new(Room).setKeys(&config); err != nil || config.Passphrase != "correct horse" {
		t.Errorf("passphrase is %q, %v", config.Passphrase, err)
	}
	if !new(Room).Encrypts() {
		t.Error("a room with a passphrase does not encrypt")
	}
}

// TestKeyFileRotation changes a key file as a rotation does, and checks the epoch with which the participant sends, and
// the epochs that it accepts.
func TestKeyFileRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	writeKeys(t, path, firstKey)
	t.Setenv(PassphraseVariable, "")
	synctest.Test(t, func(t *testing.T) {
		var config client.Config
		file, err := (&Room{KeyFile: path}).setKeys(&config)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		defer func() { close(done); synctest.Wait() }()
		var said bytes.Buffer
		go file.follow(done, slog.New(slog.NewTextHandler(&said, nil)))
		sealer := e2ee.NewSealer(config.Keys, "alice")
		// expect seals a frame and opens it as participants do who have one of the secrets only.
		expect := func(when string, want e2ee.Epoch) {
			t.Helper()
			sealed, err := sealer.Seal(nil, e2ee.Subject{}, []byte("frame"))
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{firstKey, secondKey} {
				lines, err := parseKeyFile([]byte(text))
				if err != nil {
					t.Fatal(err)
				}
				keys := new(e2ee.Keys)
				if err := keys.SetSecret(lines[0].epoch, lines[0].secret); err != nil {
					t.Fatal(err)
				}
				_, err = e2ee.NewOpener(keys).Open("alice", e2ee.Subject{}, bytes.Clone(sealed))
				if (err == nil) != (lines[0].epoch == want) {
					t.Errorf("%s: opened by epoch %d: %v, expected epoch %d", when, lines[0].epoch, err, want)
				}
			}
		}
		expect("at first", 0)
		writeKeys(t, path, firstKey, secondKey)
		time.Sleep(keyFileInterval + epochDelay/2)
		expect("before the delay", 0)
		time.Sleep(epochDelay)
		expect("after the delay", 1)
		writeKeys(t, path, "not a key")
		time.Sleep(2*keyFileInterval + epochDelay)
		expect("with an invalid file", 1)
		writeKeys(t, path, secondKey)
		time.Sleep(2*keyFileInterval + epochDelay)
		expect("without the old epoch", 1)
		if err := config.Keys.Use(0); err == nil {
			t.Error("the old epoch is not forgotten")
		}
		synctest.Wait()
		if got := said.String(); strings.Count(got, "cannot be used") != 1 || strings.Contains(got, "2233") {
			t.Errorf("the log has\n%s", got)
		}
	})
}
