// Package libopus encodes and decodes Opus (RFC 6716) with Xiph's library, which is linked by cgo from Debian's
// libopus-dev. Samples have one channel at 48 kHz, between -1 and 1. Packets with two channels are decoded to one.
//
// Encoders and decoders have state. Each is used by one goroutine at a time.
package libopus

import "errors"

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
	// ErrUnavailable is returned if Available returns false. The text explains how to build a program with Opus.
	ErrUnavailable = errors.New("built without Opus; build with CGO_ENABLED=1 after apt-get install gcc libopus-dev")
	// ErrMalformed is returned for a packet that is not valid Opus.
	ErrMalformed = errors.New("malformed Opus packet")
)
