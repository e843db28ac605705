package srtp

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pion/rtp"
	pion "github.com/pion/srtp/v3"
)

// transform is a cryptographic transform for RTP (RFC 3711 section 4) with the keys of one direction. The transform
// does not track indices.
type transform interface {
	// seal protects payload after the header of the given size at the start of packet. packet has the length of the
	// protected packet; payload is separate, or at its final position in packet.
	seal(packet []byte, header int, payload []byte, ssrc uint32, index uint64) error
	// open authenticates and decrypts a packet in place, and returns the packet without the tag. packet is at least as
	// long as the header and the tag.
	open(packet []byte, header int, ssrc uint32, index uint64) ([]byte, error)
}

// newTransform returns the transform for RTP with a master key and a master salt.
func newTransform(p Profile, masterKey, masterSalt []byte) (transform, error) {
	if p == AES128CMHMACSHA180 {
		context, err := newContext(p, masterKey, masterSalt)
		if err != nil {
			return nil, err
		}
		return &counterMode{context: context}, nil
	}
	key, err := deriveSessionKey(masterKey, masterSalt, labelEncryption, len(masterKey))
	if err != nil {
		return nil, err
	}
	salt, err := deriveSessionKey(masterKey, masterSalt, labelSalt, len(masterSalt))
	if err != nil {
		return nil, err
	}
	return newGaloisCounterMode(key, salt)
}

// newContext returns a context of Pion, for RTP or RTCP in one direction, without replay protection.
func newContext(p Profile, masterKey, masterSalt []byte) (*pion.Context, error) {
	context, err := pion.CreateContext(masterKey, masterSalt, pion.ProtectionProfile(p), pion.SRTPNoReplayProtection(),
		pion.SRTCPNoReplayProtection())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeys, err)
	}
	return context, nil
}

// tagSize returns the size in bytes of a profile's authentication tag, for RTP and RTCP.
func (p Profile) tagSize() int {
	if p == AES128CMHMACSHA180 {
		return 10
	}
	return 16
}

// galoisCounterMode is AES-GCM (RFC 7714).
type galoisCounterMode struct {
	aead     cipher.AEAD
	saltHead uint32 // first 4 bytes of the session salt
	saltTail uint64 // other 8 bytes
	nonce    [12]byte
}

// newGaloisCounterMode returns the transform for a session key and a session salt.
func newGaloisCounterMode(key, salt []byte) (*galoisCounterMode, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeys, err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("AES-GCM: %w", err)
	}
	return &galoisCounterMode{aead: aead, saltHead: binary.BigEndian.Uint32(salt),
		saltTail: binary.BigEndian.Uint64(salt[4:])}, nil
}

// setNonce computes the initialisation vector (RFC 7714 section 8.1): two zero bytes, SSRC, rollover counter and
// sequence number, XOR the salt. The last two are the 48 bits of the index.
func (g *galoisCounterMode) setNonce(ssrc uint32, index uint64) {
	binary.BigEndian.PutUint32(g.nonce[:], g.saltHead^ssrc>>16)
	binary.BigEndian.PutUint64(g.nonce[4:], g.saltTail^(uint64(ssrc)<<48|index))
}

func (g *galoisCounterMode) seal(packet []byte, header int, payload []byte, ssrc uint32, index uint64) error {
	g.setNonce(ssrc, index)
	g.aead.Seal(packet[header:header], g.nonce[:], payload, packet[:header])
	return nil
}

func (g *galoisCounterMode) open(packet []byte, header int, ssrc uint32, index uint64) ([]byte, error) {
	g.setNonce(ssrc, index)
	payload, err := g.aead.Open(packet[header:header], g.nonce[:], packet[header:], packet[:header])
	if err != nil {
		return nil, ErrAuthentication
	}
	return packet[:header+len(payload)], nil
}

// counterMode is AES-CM with HMAC-SHA1 (RFC 3711 section 4), by Pion. Pion has its own rollover counter, which is set
// before every packet, so that both counters agree.
type counterMode struct {
	context *pion.Context
	header  rtp.Header // scratch memory for parsing
}

func (c *counterMode) seal(packet []byte, header int, payload []byte, ssrc uint32, index uint64) error {
	copy(packet[header:], payload)
	c.context.SetROC(ssrc, uint32(index>>16))
	if _, err := c.context.EncryptRTP(packet, packet[:header+len(payload)], &c.header); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

func (c *counterMode) open(packet []byte, _ int, ssrc uint32, index uint64) ([]byte, error) {
	// For a stream unknown to Pion the rollover counter is 0 in both, and SetROC would create state for a packet that
	// is not authenticated yet.
	if _, known := c.context.ROC(ssrc); known {
		c.context.SetROC(ssrc, uint32(index>>16))
	}
	out, err := c.context.DecryptRTP(packet, packet, &c.header)
	return out, openingError(err)
}

// openingError converts an error of Pion to an error of this package.
func openingError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pion.ErrFailedToVerifyAuthTag):
		return ErrAuthentication
	}
	return fmt.Errorf("%w: %w", ErrMalformed, err)
}
