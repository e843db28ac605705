package sframe

import (
	"errors"
	"fmt"
	"math/bits"
)

// MaxHeaderSize is the size of a header whose KID and CTR need 8 bytes each.
const MaxHeaderSize = 1 + 8 + 8

// ErrHeader is wrapped with the defect of a header.
var ErrHeader = errors.New("malformed SFrame header")

// Header is the header of an SFrame ciphertext (RFC 9605 section 4.3).
type Header struct {
	// KID identifies the key.
	KID uint64
	// CTR is the counter of the frame, unique for the key.
	CTR uint64
}

// The configuration byte has two fields of four bits, for the KID and for the CTR. A field is the value itself if the
// value is at most maxInline, otherwise the extended bit and the number of bytes minus 1.
const (
	maxInline = 7
	extended  = 8
)

// Size returns the size of the header in bytes.
func (h Header) Size() int { return 1 + fieldSize(h.KID) + fieldSize(h.CTR) }

// Append appends the header to dst, in the shortest form.
func (h Header) Append(dst []byte) []byte {
	dst = append(dst, fieldCode(h.KID)<<4|fieldCode(h.CTR))
	dst = appendField(dst, h.KID)
	return appendField(dst, h.CTR)
}

// Parse reads the header at the start of data and returns its size. The error wraps ErrHeader.
func (h *Header) Parse(data []byte) (size int, err error) {
	if len(data) == 0 {
		return 0, fmt.Errorf("%w: no data", ErrHeader)
	}
	kid, ctr := data[0]>>4, data[0]&0xf
	size = 1 + codedSize(kid) + codedSize(ctr)
	if len(data) < size {
		return 0, fmt.Errorf("%w: %d bytes, expected at least %d", ErrHeader, len(data), size)
	}
	h.KID = field(kid, data[1:])
	h.CTR = field(ctr, data[1+codedSize(kid):])
	return size, nil
}

// fieldSize returns the number of bytes that a value needs besides its code.
func fieldSize(value uint64) int {
	if value <= maxInline {
		return 0
	}
	return (bits.Len64(value) + 7) / 8
}

// fieldCode returns the four bits of a value in the configuration byte.
func fieldCode(value uint64) byte {
	if value <= maxInline {
		return byte(value)
	}
	return extended | byte(fieldSize(value)-1)
}

func appendField(dst []byte, value uint64) []byte {
	for i := fieldSize(value) - 1; i >= 0; i-- {
		dst = append(dst, byte(value>>(8*i)))
	}
	return dst
}

// codedSize returns the number of bytes that follow for a code.
func codedSize(code byte) int {
	if code&extended == 0 {
		return 0
	}
	return int(code&^extended) + 1
}

// field returns the value of a code. data begins with the bytes of the value.
func field(code byte, data []byte) uint64 {
	if code&extended == 0 {
		return uint64(code)
	}
	value := uint64(0)
	for _, b := range data[:codedSize(code)] {
		value = value<<8 | uint64(b)
	}
	return value
}
