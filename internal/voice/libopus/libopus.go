// Package libopus encodes and decodes Opus (RFC 6716) with Xiph's library, which is linked by cgo from Debian's
// libopus-dev. With the build tag portable, the library is loaded at run time: libopus.so.0, libopus.0.dylib or
// opus.dll, beside this program or where the system has it. Samples have one channel at 48 kHz, between -1 and 1.
// Packets with two channels are decoded to one.
//
// Encoders and decoders have state. Each is used by one goroutine at a time.
package libopus

import (
	"errors"
	"time"
)

const (
	// Rate is the number of samples per second.
	Rate = 48000
	// FrameSamples is the number of samples of an encoded packet: 20 ms.
	FrameSamples = Rate / 50
	// MaxSamples is the largest number of samples of a packet: 120 ms (RFC 6716 section 3.2.5).
	MaxSamples = Rate * 120 / 1000
	// MaxPacket is the size of the largest packet that is decoded, in bytes, which fits a datagram.
	MaxPacket = 1500
)

// Errors of this package.
var (
	// ErrUnavailable is returned if Available returns false. The text explains how to get Opus.
	ErrUnavailable = errors.New("no Opus: " + remedy)
	// ErrMalformed is returned for a packet that is not valid Opus.
	ErrMalformed = errors.New("malformed Opus packet")
)

// Duration returns the duration of a number of samples.
func Duration(samples int) time.Duration { return time.Duration(samples) * time.Second / Rate }
