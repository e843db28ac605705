package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func ring(t testing.TB, keys ...string) *Keyring {
	t.Helper()
	config := DefaultConfig()
	config.Keys = keys
	r, err := NewKeyring(config)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// forge signs any header and payload, independently of Mint.
func forge(newHash func() hash.Hash, secret, header, payload string) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(payload))
	mac := hmac.New(newHash, []byte(secret))
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func TestMintAndVerify(t *testing.T) {
	r := ring(t, "new:"+secret32, "old:"+strings.ToUpper(secret32))
	for _, test := range []struct {
		name, key string
		claims    Claims
	}{
		{"everything", "", Claims{ID: "t1", Identity: "ada", Room: "lab", Publish: true, Subscribe: true, Admin: true,
			Edge: true, Expires: noon.Add(time.Hour)}},
		{"the longest id", "", Claims{ID: strings.Repeat("x", 256), Expires: noon.Add(time.Hour)}},
		{"nothing", "new", Claims{Expires: noon.Add(time.Second)}},
		{"another key", "old", Claims{Identity: "Ωmega", Room: "a room", Subscribe: true,
			Expires: noon.Add(time.Hour)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			token, err := r.Mint(test.key, test.claims, noon)
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.Verify(token, noon)
			if err != nil {
				t.Fatal(err)
			}
			if !got.Expires.Equal(test.claims.Expires) {
				t.Errorf("expires %v, expected %v", got.Expires, test.claims.Expires)
			}
			got.Expires = test.claims.Expires
			if got != test.claims {
				t.Errorf("got %+v, expected %+v", got, test.claims)
			}
		})
	}
}

func TestMintRefuses(t *testing.T) {
	r := ring(t, "a:"+secret32)
	for name, test := range map[string]struct {
		key    string
		claims Claims
		err    error
	}{
		"unknown key":      {"b", Claims{Expires: noon.Add(time.Hour)}, ErrUnknownKey},
		"expired":          {"a", Claims{Expires: noon}, ErrClaims},
		"no expiry":        {"a", Claims{}, ErrClaims},
		"absurd identity":  {"a", Claims{Identity: "a\nb", Expires: noon.Add(time.Hour)}, ErrClaims},
		"absurd room name": {"a", Claims{Room: strings.Repeat("x", 129), Expires: noon.Add(time.Hour)}, ErrClaims},
	} {
		if token, err := r.Mint(test.key, test.claims, noon); !errors.Is(err, test.err) || token != "" {
			t.Errorf("%s: got %q, %v, expected %v", name, token, err, test.err)
		}
	}
}

func TestVerify(t *testing.T) {
	const header = `{"alg":"HS256","typ":"JWT","kid":"a"}`
	const claims = `{"sub":"ada","room":"lab","publish":true,"exp":1795176000}` // 2026-11-20 12:00:00 UTC
	r := ring(t, "a:"+secret32)
	sign := func(header, payload string) string { return forge(sha256.New, secret32, header, payload) }
	good := sign(header, claims)
	parts := strings.Split(good, ".")
	for _, test := range []struct {
		name, token string
		now         time.Time
		err         error
	}{
		{"good", good, noon.Add(-time.Second), nil},
		{"within the leeway", good, noon.Add(9 * time.Second), nil},
		{"expired", good, noon.Add(11 * time.Second), ErrExpired},
		{"without expiry", sign(header, `{"sub":"ada"}`), noon, ErrClaims},
		{"not yet", sign(header, `{"exp":1795180000,"nbf":1795176011}`), noon, ErrNotYet},
		{"soon, within the leeway", sign(header, `{"exp":1795180000,"nbf":1795176009}`), noon, nil},
		{"another secret", forge(sha256.New, secret32+"x", header, claims), noon, ErrSignature},
		{"no signature", parts[0] + "." + parts[1] + ".", noon, ErrSignature},
		{"cut signature", good[:len(good)-3], noon, ErrSignature},
		{"changed claims", parts[0] + "." + base64.RawURLEncoding.EncodeToString(
			[]byte(`{"admin":true,"exp":1795180000}`)) + "." + parts[2], noon, ErrSignature},
		{"algorithm none", sign(`{"alg":"none","kid":"a"}`, claims), noon, ErrSignature},
		{"algorithm HS512", forge(sha512.New, secret32, `{"alg":"HS512","kid":"a"}`, claims), noon, ErrSignature},
		{"algorithm RS256", sign(`{"alg":"RS256","kid":"a"}`, claims), noon, ErrSignature},
		{"algorithm missing", sign(`{"kid":"a"}`, claims), noon, ErrMalformed},
		{"key missing", sign(`{"alg":"HS256"}`, claims), noon, ErrUnknownKey},
		{"key empty", sign(`{"alg":"HS256","kid":""}`, claims), noon, ErrUnknownKey},
		{"key unknown", sign(`{"alg":"HS256","kid":"b"}`, claims), noon, ErrUnknownKey},
		{"key of a wrong form", sign(`{"alg":"HS256","kid":["a"]}`, claims), noon, ErrUnknownKey},
		{"critical extension", sign(`{"alg":"HS256","kid":"a","crit":["exp"]}`, claims), noon, ErrMalformed},
		{"grant as text", sign(header, `{"admin":"true","exp":1795180000}`), noon, ErrClaims},
		{"grant as number", sign(header, `{"publish":1,"exp":1795180000}`), noon, ErrClaims},
		{"room of a wrong form", sign(header, `{"room":["lab"],"exp":1795180000}`), noon, ErrClaims},
		{"absurd room", sign(header, `{"room":"a\u0000b","exp":1795180000}`), noon, ErrClaims},
		{"expiry as text", sign(header, `{"exp":"tomorrow"}`), noon, ErrMalformed},
		{"expiry as a number in quotes", sign(header, `{"exp":"1795170000"}`), noon, ErrExpired},
		{"claims are no object", sign(header, `[]`), noon, ErrClaims},
		{"claims are no JSON", sign(header, `{`), noon, ErrMalformed},
		{"empty", "", noon, ErrMalformed},
		{"one part", "abc", noon, ErrMalformed},
		{"four parts", good + ".x", noon, ErrMalformed},
		{"padded base64", parts[0] + "=." + parts[1] + "." + parts[2], noon, ErrMalformed},
		{"huge", strings.Repeat("x", maxTokenBytes+1), noon, ErrMalformed},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := r.Verify(test.token, test.now)
			if !errors.Is(err, test.err) {
				t.Fatalf("error is %v, expected %v", err, test.err)
			}
			if err != nil && len(parts[1]) > 0 && strings.Contains(err.Error(), parts[1]) {
				t.Errorf("error %q quotes the token", err)
			}
		})
	}
}

// FuzzVerify: every accepted token has a signature that crypto/hmac confirms, and errors contain no part of the token.
func FuzzVerify(f *testing.F) {
	r := ring(f, "a:"+secret32)
	token, err := r.Mint("", Claims{Identity: "ada", Room: "lab", Publish: true, Expires: noon.Add(time.Hour)}, noon)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(token)
	f.Add(token[:len(token)-1])
	f.Add(forge(sha256.New, secret32, `{"alg":"HS256","kid":"a"}`, `{"exp":1e300,"sub":"x"}`))
	f.Add(forge(sha256.New, secret32, `{"alg":"none","kid":"a"}`, `{"exp":1795180000}`))
	f.Add("..")
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, token string) {
		claims, err := r.Verify(token, noon)
		if err != nil {
			return
		}
		text, signature, _ := cutLast(token, ".")
		mac := hmac.New(sha256.New, []byte(secret32))
		mac.Write([]byte(text))
		if got := base64.RawURLEncoding.EncodeToString(mac.Sum(nil)); got != signature {
			t.Errorf("accepted %q with the signature %q, expected %q", token, signature, got)
		}
		if claims.Expires.IsZero() {
			t.Errorf("accepted %q without expiry", token)
		}
	})
}

func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(separator):], true
}

// TestIDTooLong: IDs of revoked tokens are stored, so their length is limited.
func TestIDTooLong(t *testing.T) {
	r := ring(t, "new:"+secret32)
	id := strings.Repeat("x", 256+1)
	if _, err := r.Mint("", Claims{ID: id, Expires: noon.Add(time.Hour)}, noon); !errors.Is(err, ErrClaims) {
		t.Errorf("minting gave %v", err)
	}
	token := forge(sha256.New, secret32, `{"alg":"HS256","kid":"new"}`,
		fmt.Sprintf(`{"exp":%d,"jti":%q}`, noon.Add(time.Hour).Unix(), id))
	if _, err := r.Verify(token, noon); !errors.Is(err, ErrClaims) {
		t.Errorf("verifying gave %v", err)
	}
}
