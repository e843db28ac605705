package token

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

const secret = "MIKzCT4mEpOAqPZvLGKJ0RiNtcHY7wF3"

// TestMint compares a token with one that a Python program has made of the same parts.
func TestMint(t *testing.T) {
	key, err := ParseKey("first:" + secret)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1795176000, 0)
	claims := Claims{Room: "lab", Identity: "ada", Publish: true, ID: "t1", Expires: now.Add(time.Hour)}
	got, err := key.Mint(claims, now)
	if err != nil {
		t.Fatal(err)
	}
	const want = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImZpcnN0IiwidHlwIjoiSldUIn0." +
		"eyJyb29tIjoibGFiIiwicHVibGlzaCI6dHJ1ZSwic3ViIjoiYWRhIiwi" +
		"anRpIjoidDEiLCJpYXQiOjE3OTUxNzYwMDAsImV4cCI6MTc5NTE3OTYwMH0." +
		"sxLzTrcwviYuLy83UKHxYONtFMZ_FrEx71xnQ9Xa3do"
	if got != want {
		t.Errorf("got %s, expected %s", got, want)
	}
	for name, wrong := range map[string]Claims{
		"expired":        {Expires: now},
		"no expiry":      {},
		"line break":     {Identity: "a\nb", Expires: now.Add(time.Hour)},
		"long room name": {Room: strings.Repeat("x", 129), Expires: now.Add(time.Hour)},
		"long id":        {ID: strings.Repeat("x", maxIDBytes+1), Expires: now.Add(time.Hour)},
	} {
		if text, err := key.Mint(wrong, now); !errors.Is(err, ErrClaims) || text != "" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	text := fmt.Sprintf("%v %+v %#v", key, key, key)
	if strings.Contains(text, secret) || !strings.Contains(text, "first") {
		t.Errorf("a key is shown as %s", text)
	}
}

// FuzzParseKey: an accepted key has its name before the first colon, and a secret of full length.
func FuzzParseKey(f *testing.F) {
	f.Add("a:" + secret)
	f.Add("a:base64:" + base64.StdEncoding.EncodeToString([]byte(secret)))
	f.Add("a:base64:")
	f.Add(":")
	f.Fuzz(func(t *testing.T, line string) {
		k, err := ParseKey(line)
		if err == nil && (k.id == "" || len(k.secret) < MinSecretBytes || !strings.HasPrefix(line, k.id+":")) {
			t.Errorf("%q gives %+v", line, k)
		}
		if err != nil && !errors.Is(err, ErrKey) {
			t.Errorf("%q: error is %v", line, err)
		}
	})
}
