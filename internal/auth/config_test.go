package auth

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const secret32 = "0123456789abcdef0123456789abcdef"

func TestKeys(t *testing.T) {
	binary := bytes.Repeat([]byte{0xff, 0x00}, 16)
	encoded := base64.StdEncoding.EncodeToString(binary)
	for _, test := range []struct {
		name string
		keys []string
		file string
		ids  []string
		// secret is that of the first key.
		secret string
		err    error
	}{
		{name: "plain", keys: []string{"a:" + secret32}, ids: []string{"a"}, secret: secret32},
		{name: "plain with colons", keys: []string{"a:b:" + secret32}, ids: []string{"a"}, secret: "b:" + secret32},
		{name: "base64", keys: []string{"2026-11.a_b:base64:" + encoded}, ids: []string{"2026-11.a_b"},
			secret: string(binary)},
		{name: "text similar to base64", keys: []string{"a:" + encoded}, ids: []string{"a"}, secret: encoded},
		{name: "file", file: "# keys\n\n  a:" + secret32 + "\r\nb:base64:" + encoded, ids: []string{"a", "b"},
			secret: secret32},
		{name: "both", keys: []string{"a:" + secret32}, file: "b:" + secret32, ids: []string{"a", "b"},
			secret: secret32},
		{name: "none", err: ErrKey},
		{name: "empty file", file: "# nothing\n", err: ErrKey},
		{name: "no name", keys: []string{":" + secret32}, err: ErrKey},
		{name: "no colon", keys: []string{secret32}, err: ErrKey},
		{name: "bad name", keys: []string{"a b:" + secret32}, err: ErrKey},
		{name: "long name", keys: []string{strings.Repeat("a", 65) + ":" + secret32}, err: ErrKey},
		{name: "short secret", keys: []string{"a:" + secret32[1:]}, err: ErrKey},
		{name: "short secret in base64", keys: []string{"a:base64:" + encoded[:40]}, err: ErrKey},
		{name: "not base64", keys: []string{"a:base64:" + strings.Repeat("*", 60)}, err: ErrKey},
		{name: "twice", keys: []string{"a:" + secret32}, file: "a:" + secret32, err: ErrKey},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := DefaultConfig()
			config.Keys = test.keys
			if test.file != "" {
				config.KeyFile = filepath.Join(t.TempDir(), "keys")
				if err := os.WriteFile(config.KeyFile, []byte(test.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			ring, err := NewKeyring(config)
			if !errors.Is(err, test.err) {
				t.Fatalf("error is %v, expected %v", err, test.err)
			}
			if err != nil {
				if strings.Contains(err.Error(), secret32[1:]) || strings.Contains(err.Error(), encoded[:40]) {
					t.Errorf("error %q contains the secret", err)
				}
				return
			}
			if !slices.Equal(ring.KeyIDs(), test.ids) || string(ring.keys[0].Secret()) != test.secret {
				t.Errorf("got %v, first secret %q, expected %v, %q", ring.KeyIDs(), ring.keys[0].Secret(), test.ids,
					test.secret)
			}
		})
	}
}

func TestKeyFileErrors(t *testing.T) {
	config := DefaultConfig()
	config.KeyFile = filepath.Join(t.TempDir(), "absent")
	if _, err := NewKeyring(config); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v, expected that the file does not exist", err)
	}
	if err := os.WriteFile(config.KeyFile, make([]byte, maxKeyFileBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewKeyring(config); !errors.Is(err, ErrKey) {
		t.Errorf("error is %v, expected ErrKey for a huge file", err)
	}
}

func TestConfigValidate(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
	for _, leeway := range []time.Duration{-1, maxLeeway + 1} {
		if err := (Config{Leeway: leeway}).Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("leeway %v: error is %v, expected ErrConfig", leeway, err)
		}
	}
	if err := (Config{Keys: []string{"a:short"}}).Validate(); !errors.Is(err, ErrKey) {
		t.Errorf("short secret: error is %v, expected ErrKey", err)
	}
}
