package srtp

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	pion "github.com/pion/srtp/v3"
)

// exporter returns keying material as DTLS would.
type exporter []byte

func (e exporter) ExportKeyingMaterial(_ string, _ []byte, n int) ([]byte, error) {
	if n != len(e) {
		return nil, errors.New("wrong length")
	}
	return e, nil
}

// TestExtractKeys compares with Pion's extraction, which has the same order.
func TestExtractKeys(t *testing.T) {
	for _, p := range profiles {
		k := testKeys(t, p)
		config := pion.Config{Profile: pion.ProtectionProfile(p)}
		material := slices.Concat(k.ClientKey, k.ServerKey, k.ClientSalt, k.ServerSalt)
		if err := config.ExtractSessionKeysFromDTLS(exporter(material), true); err != nil {
			t.Fatal(err)
		}
		for name, pair := range map[string][2][]byte{
			"client key":  {k.ClientKey, config.Keys.LocalMasterKey},
			"client salt": {k.ClientSalt, config.Keys.LocalMasterSalt},
			"server key":  {k.ServerKey, config.Keys.RemoteMasterKey},
			"server salt": {k.ServerSalt, config.Keys.RemoteMasterSalt},
		} {
			if !bytes.Equal(pair[0], pair[1]) {
				t.Errorf("%s: %s is %x, expected %x", p, name, pair[0], pair[1])
			}
		}
		copied := bytes.Clone(k.ClientKey)
		extracted, err := ExtractKeys(p, material)
		if err != nil {
			t.Fatal(err)
		}
		clear(material)
		if !bytes.Equal(extracted.ClientKey, copied) {
			t.Errorf("%s: the keys share memory with the keying material", p)
		}
	}
}

func TestKeysRefused(t *testing.T) {
	if _, err := KeyingMaterialLength(2); !errors.Is(err, ErrProfile) {
		t.Errorf("profile 2 gives %v", err)
	}
	if _, err := ExtractKeys(2, nil); !errors.Is(err, ErrProfile) {
		t.Errorf("profile 2 gives %v", err)
	}
	if _, err := ExtractKeys(AES128GCM, make([]byte, 57)); !errors.Is(err, ErrKeys) {
		t.Errorf("57 bytes for 56 give %v", err)
	}
	k := testKeys(t, AES256GCM)
	k.ServerKey = k.ServerKey[:16]
	if _, err := NewSealer(k, false); !errors.Is(err, ErrKeys) {
		t.Errorf("a sealer with a short key gives %v", err)
	}
	if _, err := NewOpener(k, true, 64); !errors.Is(err, ErrKeys) {
		t.Errorf("an opener with a short key gives %v", err)
	}
	if _, err := NewSealer(Keys{Profile: 9}, true); !errors.Is(err, ErrProfile) {
		t.Errorf("a sealer with profile 9 gives %v", err)
	}
	for _, window := range []int{-1, 0, MinWindow - 1, MaxWindow + 1} {
		if _, err := NewOpener(testKeys(t, AES128GCM), true, window); !errors.Is(err, ErrWindow) {
			t.Errorf("a window of %d gives %v", window, err)
		}
	}
}

// TestKeyDerivation checks the vectors of RFC 3711 appendix B.3. All other tests compare salts of 12 bytes with Pion.
func TestKeyDerivation(t *testing.T) {
	key := fromHex(t, "E1F97A0D3E018BE0D64FA32C06DE4139")
	salt := fromHex(t, "0EC675AD498AFEEBB6960B3AABE6")
	for label, want := range map[byte]string{
		labelEncryption: "C61E7A93744F39EE10734AFE3FF7A087",
		labelSalt:       "30CBBC08863D8C85D49DB34A9AE1",
		// The authentication key takes more than one block.
		0x01: `CEBE321F6FF7716B6FD4AB49AF256A156D38BAA4 8F0A0ACF3C34E2359E6CDBCE E049646C43D9327AD175578EF7227098
			6371C10C9A369AC2F94A8C5FBCDDDC25 6D6E919A48B610EF17C2041E47403576 6B68642C59BBFC2F34DB60DBDFB2DC68`,
	} {
		got, err := deriveSessionKey(key, salt, label, len(fromHex(t, want)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, fromHex(t, want)) {
			t.Errorf("label %d gives %x, expected %s", label, got, want)
		}
	}
}

// TestVectors checks the packets of RFC 7714 sections 16.1.1, 16.1.2, 16.2.1 and 16.2.2, whose keys are session keys.
func TestVectors(t *testing.T) {
	plain := fromHex(t, `8040f17b 8041f8d3 5501a0b2 47616c6c 69612065 7374206f 6d6e6973 20646976 69736120
			696e2070 61727465 73207472 6573`)
	for key, want := range map[string]string{
		"000102030405060708090a0b0c0d0e0f": `8040f17b 8041f8d3 5501a0b2 f24de3a3 fb34de6c acba861c 9d7e4bca
			be633bd5 0d294e6f 42a5f47a
			51c7d19b 36de3adf 8833899d 7f27beb1 6a9152cf 765ee439 0cce`,
		"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f": `8040f17b 8041f8d3 5501a0b2 32b1de78
			a822fe12 ef9f78fa 332e33aa
			b1801238 9a58e2f3 b50b2a02 76ffae0f 1ba63799 b87b7aa3 db36dfff d6b0f9bb 7878d7a7 6c13`,
	} {
		transform, err := newGaloisCounterMode(fromHex(t, key), fromHex(t, "51756964 2070726f 2071756f"))
		if err != nil {
			t.Fatal(err)
		}
		packet := append(bytes.Clone(plain[:fixedHeaderSize]), make([]byte, len(plain)-fixedHeaderSize+16)...)
		if err := transform.seal(packet, headerSize(packet), plain[fixedHeaderSize:], 0x5501a0b2, 0xf17b); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(packet, fromHex(t, want)) {
			t.Errorf("sealed under %s: %x, expected %s", key, packet, want)
		}
		opened, err := transform.open(fromHex(t, want), fixedHeaderSize, 0x5501a0b2, 0xf17b)
		if err != nil || !bytes.Equal(opened, plain) {
			t.Errorf("opened under %s: %x, %v", key, opened, err)
		}
	}
}

func TestProfileNames(t *testing.T) {
	for _, p := range profiles {
		if got, want := p.String(), pion.ProtectionProfile(p).String(); got != want {
			t.Errorf("%#04x is %s, expected %s", uint16(p), got, want)
		}
	}
	if got := Profile(2).String(); got != "SRTP profile 0x0002" {
		t.Errorf("0x0002 is %s", got)
	}
}
