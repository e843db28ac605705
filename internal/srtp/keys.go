package srtp

import (
	"bytes"
	"crypto/aes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Errors of keys.
var (
	// ErrProfile is the sentinel of an unknown protection profile.
	ErrProfile = errors.New("unknown protection profile")
	// ErrKeys is the sentinel of keying material, a key or a salt of the wrong length for the profile.
	ErrKeys = errors.New("keys of the wrong length")
)

// Profile is a protection profile, by the number in DTLS (RFC 5764 section 4.1.2, RFC 7714 section 14.2).
type Profile uint16

// The profiles. AES-GCM costs less than a sixth of AES-CM with HMAC-SHA1.
const (
	// AES128CMHMACSHA180 is SRTP_AES128_CM_HMAC_SHA1_80, which every WebRTC endpoint has (RFC 8827 section 6.5).
	AES128CMHMACSHA180 Profile = 0x0001
	// AES128GCM is SRTP_AEAD_AES_128_GCM.
	AES128GCM Profile = 0x0007
	// AES256GCM is SRTP_AEAD_AES_256_GCM.
	AES256GCM Profile = 0x0008
)

// String returns the profile's name in DTLS.
func (p Profile) String() string {
	switch p {
	case AES128CMHMACSHA180:
		return "SRTP_AES128_CM_HMAC_SHA1_80"
	case AES128GCM:
		return "SRTP_AEAD_AES_128_GCM"
	case AES256GCM:
		return "SRTP_AEAD_AES_256_GCM"
	}
	return fmt.Sprintf("SRTP profile %#04x", uint16(p))
}

// lengths returns the sizes in bytes of a master key and of a master salt. Session keys and salts have the same sizes.
func (p Profile) lengths() (key, salt int, err error) {
	switch p {
	case AES128CMHMACSHA180:
		return 16, 14, nil
	case AES128GCM:
		return 16, 12, nil
	case AES256GCM:
		return 32, 12, nil
	}
	return 0, 0, fmt.Errorf("%w: %s", ErrProfile, p)
}

// Keys are the master keys and master salts of both directions: the client's protect packets from the DTLS client, the
// server's packets from the server.
type Keys struct {
	Profile    Profile
	ClientKey  []byte
	ClientSalt []byte
	ServerKey  []byte
	ServerSalt []byte
}

// KeyingMaterialLength returns the number of bytes to export from DTLS under the label "EXTRACTOR-dtls_srtp" for
// ExtractKeys. Errors wrap ErrProfile.
func KeyingMaterialLength(p Profile) (int, error) {
	key, salt, err := p.lengths()
	return 2 * (key + salt), err
}

// ExtractKeys divides exported keying material into keys, in the order of RFC 5764 section 4.2: client key, server key,
// client salt, server salt. The keys are copies. Errors wrap ErrProfile or ErrKeys.
func ExtractKeys(p Profile, material []byte) (Keys, error) {
	key, salt, err := p.lengths()
	if err != nil {
		return Keys{}, err
	}
	if need := 2 * (key + salt); len(material) != need {
		return Keys{}, fmt.Errorf("%w: keying material has %d bytes, expected %d", ErrKeys, len(material), need)
	}
	cut := func(n int) []byte {
		part := bytes.Clone(material[:n])
		material = material[n:]
		return part
	}
	return Keys{Profile: p, ClientKey: cut(key), ServerKey: cut(key), ClientSalt: cut(salt), ServerSalt: cut(salt)}, nil
}

// direction returns the master key and the master salt of the packets that one side sends.
func (k Keys) direction(fromClient bool) (key, salt []byte, err error) {
	keyLength, saltLength, err := k.Profile.lengths()
	if err != nil {
		return nil, nil, err
	}
	key, salt = k.ServerKey, k.ServerSalt
	if fromClient {
		key, salt = k.ClientKey, k.ClientSalt
	}
	if len(key) != keyLength || len(salt) != saltLength {
		return nil, nil, fmt.Errorf("%w: master key of %d and master salt of %d bytes, expected %d and %d", ErrKeys,
			len(key), len(salt), keyLength, saltLength)
	}
	return key, salt, nil
}

// The labels of the session keys that protect RTP (RFC 3711 section 4.3.1).
const (
	labelEncryption = 0x00
	labelSalt       = 0x02
)

// deriveSessionKey derives n bytes of session key or salt from the master key and salt (RFC 3711 section 4.3, with a
// key derivation rate of 0). A salt of 12 bytes is placed at the upper end of the 14 bytes of the derivation (RFC 7714
// section 11). The master key must be a valid AES key.
func deriveSessionKey(masterKey, masterSalt []byte, label byte, n int) ([]byte, error) {
	block, err := aes.NewCipher(masterKey)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeys, err)
	}
	// The input is master salt XOR label · 2^48, which is 14 bytes long, then a block counter.
	var input [aes.BlockSize]byte
	copy(input[:14], masterSalt)
	input[7] ^= label
	var out []byte
	for counter := uint16(0); len(out) < n; counter++ {
		var keystream [aes.BlockSize]byte
		binary.BigEndian.PutUint16(input[14:], counter)
		block.Encrypt(keystream[:], input[:])
		out = append(out, keystream[:]...)
	}
	return out[:n], nil
}
