package sframe

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
)

// Suite is a cipher suite (RFC 9605 section 4.5).
type Suite uint16

// The cipher suites of this package. Their tag has TagSize bytes, their nonce 12.
const (
	AES128GCMSHA256 Suite = 0x0004
	AES256GCMSHA512 Suite = 0x0005
)

const (
	// TagSize is the size of the tag at the end of a ciphertext.
	TagSize = 16
	// Overhead is the largest difference between the sizes of a ciphertext and of its plaintext.
	Overhead = MaxHeaderSize + TagSize

	nonceSize = 12
)

// Errors of keys and of ciphertexts. ErrAuthentication means that the key, the ciphertext or the metadata is not the
// sender's.
var (
	ErrSuite          = errors.New("unknown SFrame cipher suite")
	ErrAuthentication = errors.New("SFrame ciphertext is not authentic")
)

// Key encrypts and decrypts the frames of one key identifier. The methods are safe for concurrent use.
type Key struct {
	kid  uint64
	aead cipher.AEAD
	salt [nonceSize]byte
}

// NewKey derives the key and the salt of a key identifier from a base key (RFC 9605 section 4.4.2).
func NewKey(suite Suite, kid uint64, base []byte) (*Key, error) {
	secret, key, salt, err := derive(suite, kid, base)
	clear(secret)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("SFrame key: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("SFrame key: %w", err)
	}
	clear(key)
	return &Key{kid: kid, aead: aead, salt: [nonceSize]byte(salt)}, nil
}

func derive(suite Suite, kid uint64, base []byte) (secret, key, salt []byte, err error) {
	var digest func() hash.Hash
	var keySize int
	switch suite {
	case AES128GCMSHA256:
		digest, keySize = sha256.New, 16
	case AES256GCMSHA512:
		digest, keySize = sha512.New, 32
	default:
		return nil, nil, nil, fmt.Errorf("%w %#04x", ErrSuite, uint16(suite))
	}
	if secret, err = hkdf.Extract(digest, base, nil); err != nil {
		return nil, nil, nil, fmt.Errorf("SFrame secret: %w", err)
	}
	if key, err = hkdf.Expand(digest, secret, label("key", kid, suite), keySize); err != nil {
		return nil, nil, nil, fmt.Errorf("SFrame key: %w", err)
	}
	if salt, err = hkdf.Expand(digest, secret, label("salt", kid, suite), nonceSize); err != nil {
		return nil, nil, nil, fmt.Errorf("SFrame salt: %w", err)
	}
	return secret, key, salt, nil
}

// label returns the label with which a key or salt is derived.
func label(purpose string, kid uint64, suite Suite) string {
	l := append([]byte("SFrame 1.0 Secret "), purpose...)
	l = append(l, ' ')
	l = binary.BigEndian.AppendUint64(l, kid)
	return string(binary.BigEndian.AppendUint16(l, uint16(suite)))
}

// nonce returns the nonce of a counter: the salt, whose last 8 bytes are combined with the counter by xor.
func (k *Key) nonce(ctr uint64) []byte {
	nonce := k.salt
	for i := range 8 {
		nonce[nonceSize-1-i] ^= byte(ctr >> (8 * i))
	}
	return nonce[:]
}

// Seal appends the ciphertext of a frame to dst: header, encrypted plaintext and tag. A counter must not be used twice
// with a key. plaintext must not overlap the memory behind dst.
func (k *Key) Seal(dst []byte, ctr uint64, metadata, plaintext []byte) []byte {
	header := Header{KID: k.kid, CTR: ctr}
	aad := header.Append(make([]byte, 0, MaxHeaderSize+len(metadata)))
	dst = append(dst, aad...)
	return k.aead.Seal(dst, k.nonce(ctr), plaintext, append(aad, metadata...))
}

// Open decrypts a ciphertext in its own memory, and returns the plaintext. The ciphertext is lost in any case. The KID
// of the header must be that of the key. The error wraps ErrHeader or ErrAuthentication.
func (k *Key) Open(ciphertext, metadata []byte) ([]byte, error) {
	var header Header
	size, err := header.Parse(ciphertext)
	if err != nil {
		return nil, err
	}
	if header.KID != k.kid {
		return nil, fmt.Errorf("%w: key identifier is %#x, expected %#x", ErrAuthentication, header.KID, k.kid)
	}
	aad := append(make([]byte, 0, size+len(metadata)), ciphertext[:size]...)
	sealed := ciphertext[size:]
	plaintext, err := k.aead.Open(sealed[:0], k.nonce(header.CTR), sealed, append(aad, metadata...))
	if err != nil {
		return nil, ErrAuthentication
	}
	return plaintext, nil
}
