package sframe

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"testing"
)

// vectors are the test vectors of RFC 9605 appendix C: all headers, and the cipher suites with AES-GCM.
type vectors struct {
	Header []struct {
		KID, CTR uint64
		Encoded  hexBytes
	} `json:"header"`
	SFrame []struct {
		Suite    Suite    `json:"cipher_suite"`
		KID      uint64   `json:"kid"`
		CTR      uint64   `json:"ctr"`
		BaseKey  hexBytes `json:"base_key"`
		KeyLabel hexBytes `json:"sframe_key_label"`
		Secret   hexBytes `json:"sframe_secret"`
		Key      hexBytes `json:"sframe_key"`
		Salt     hexBytes `json:"sframe_salt"`
		Metadata hexBytes `json:"metadata"`
		Nonce    hexBytes `json:"nonce"`
		Plain    hexBytes `json:"pt"`
		Cipher   hexBytes `json:"ct"`
	} `json:"sframe"`
}

type hexBytes []byte

func (h *hexBytes) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

func read(t testing.TB) vectors {
	t.Helper()
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		RFC9605 vectors `json:"rfc9605"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return file.RFC9605
}

func TestHeadersOfTheRFC(t *testing.T) {
	all := read(t).Header
	if len(all) < 289 {
		t.Fatalf("%d vectors, expected 289", len(all))
	}
	for _, v := range all {
		header := Header{KID: v.KID, CTR: v.CTR}
		if got := header.Append(nil); !bytes.Equal(got, v.Encoded) || header.Size() != len(got) {
			t.Errorf("%+v: got %x of %d bytes, expected %x", header, got, header.Size(), v.Encoded)
		}
		var parsed Header
		if size, err := parsed.Parse(v.Encoded); err != nil || size != len(v.Encoded) || parsed != header {
			t.Errorf("%x: got %+v, %d bytes, %v; expected %+v", v.Encoded, parsed, size, err, header)
		}
		if _, err := parsed.Parse(v.Encoded[:len(v.Encoded)-1]); !errors.Is(err, ErrHeader) {
			t.Errorf("%x without its last byte: error is %v, expected ErrHeader", v.Encoded, err)
		}
	}
}

func TestSuitesOfTheRFC(t *testing.T) {
	all := read(t).SFrame
	if len(all) != 2 {
		t.Fatalf("%d vectors, expected those of two suites", len(all))
	}
	for _, v := range all {
		secret, derived, salt, err := derive(v.Suite, v.KID, v.BaseKey)
		if err != nil || !bytes.Equal(secret, v.Secret) || !bytes.Equal(derived, v.Key) || !bytes.Equal(salt, v.Salt) {
			t.Errorf("suite %d: derived %x, %x, %x, %v; expected %x, %x, %x", v.Suite, secret, derived, salt, err,
				v.Secret, v.Key, v.Salt)
		}
		if got := label("key", v.KID, v.Suite); got != string(v.KeyLabel) {
			t.Errorf("suite %d: label is %x, expected %x", v.Suite, got, v.KeyLabel)
		}
		key, err := NewKey(v.Suite, v.KID, v.BaseKey)
		if err != nil {
			t.Fatal(err)
		}
		if got := key.nonce(v.CTR); !bytes.Equal(got, v.Nonce) {
			t.Errorf("suite %d: nonce is %x, expected %x", v.Suite, got, v.Nonce)
		}
		if got := key.Seal(nil, v.CTR, v.Metadata, v.Plain); !bytes.Equal(got, v.Cipher) {
			t.Errorf("suite %d: ciphertext is %x, expected %x", v.Suite, got, v.Cipher)
		}
		if got, err := key.Open(bytes.Clone(v.Cipher), v.Metadata); err != nil || !bytes.Equal(got, v.Plain) {
			t.Errorf("suite %d: plaintext is %x, %v; expected %x", v.Suite, got, err, v.Plain)
		}
	}
}

// TestEveryChangedBitIsRejected changes each bit of a ciphertext and of its metadata in turn.
func TestEveryChangedBitIsRejected(t *testing.T) {
	key := newKey(t, 0x123)
	metadata := []byte("tile 3")
	sealed := key.Seal(nil, 17, metadata, []byte("a frame"))
	for bit := range 8 * (len(sealed) + len(metadata)) {
		changed := append(bytes.Clone(sealed), metadata...)
		changed[bit/8] ^= 1 << (bit % 8)
		if got, err := key.Open(changed[:len(sealed):len(sealed)], changed[len(sealed):]); err == nil {
			t.Errorf("bit %d changed: got %q, expected an error", bit, got)
		}
	}
}

func TestErrors(t *testing.T) {
	if _, err := NewKey(1, 0, make([]byte, 16)); !errors.Is(err, ErrSuite) {
		t.Errorf("suite 1: error is %v, expected ErrSuite", err)
	}
	key := newKey(t, 9)
	sealed := key.Seal(nil, 0, nil, []byte("a frame"))
	if _, err := newKey(t, 10).Open(bytes.Clone(sealed), nil); !errors.Is(err, ErrAuthentication) {
		t.Errorf("another key identifier: error is %v, expected ErrAuthentication", err)
	}
	for length := range sealed {
		if _, err := key.Open(bytes.Clone(sealed[:length]), nil); err == nil {
			t.Errorf("the first %d bytes of %d were accepted", length, len(sealed))
		}
	}
}

func TestSealingAppends(t *testing.T) {
	key := newKey(t, 1)
	sealed := key.Seal([]byte("prefix"), 1<<40, []byte("about"), []byte("a frame"))
	if !bytes.HasPrefix(sealed, []byte("prefix")) || len(sealed) > len("prefix")+len("a frame")+Overhead {
		t.Fatalf("got %q", sealed)
	}
	if got, err := key.Open(sealed[len("prefix"):], []byte("about")); err != nil || string(got) != "a frame" {
		t.Errorf("got %q, %v", got, err)
	}
}

func newKey(t testing.TB, kid uint64) *Key {
	t.Helper()
	key, err := NewKey(AES256GCMSHA512, kid, []byte("a base key of thirty-two bytes.."))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// FuzzParse compares headers with what the package makes of their values: the same, unless the header is longer than
// necessary.
func FuzzParse(f *testing.F) {
	for _, v := range read(f).Header {
		f.Add([]byte(v.Encoded))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var header Header
		size, err := header.Parse(data)
		if err != nil {
			return
		}
		if size < 1 || size > len(data) || size > MaxHeaderSize {
			t.Fatalf("a header of %d bytes in %d", size, len(data))
		}
		made := header.Append(nil)
		if len(made) > size || len(made) == size && !bytes.Equal(made, data[:size]) {
			t.Errorf("%x became %+v and %x", data[:size], header, made)
		}
	})
}

// FuzzOpen opens arbitrary data. Only the ciphertext that the key has made is accepted.
func FuzzOpen(f *testing.F) {
	key := newKey(f, 0x123)
	genuine := key.Seal(nil, 5, []byte("about"), []byte("a frame"))
	f.Add(genuine, []byte("about"))
	f.Add([]byte{0x99, 1, 0x23}, []byte{})
	f.Fuzz(func(t *testing.T, data, metadata []byte) {
		same := bytes.Equal(data, genuine) && string(metadata) == "about"
		if got, err := key.Open(bytes.Clone(data), metadata); (err == nil) != same {
			t.Errorf("%x about %q: got %q, %v", data, metadata, got, err)
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	key := newKey(b, 0x123)
	frame, buffer := make([]byte, 50_000), make([]byte, 0, 50_000+Overhead)
	b.SetBytes(int64(len(frame)))
	for i := range b.N {
		buffer = key.Seal(buffer[:0], uint64(i), []byte("about"), frame)
	}
}
