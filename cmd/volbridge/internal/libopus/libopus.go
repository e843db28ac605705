// Package libopus encodes and decodes Opus (RFC 6716) by Xiph's library, which is linked in by cgo against Debian's
// libopus-dev. Samples are those of one channel at 48 kHz, between -1 and 1; what has two channels is decoded to one.
//
// Encoders and decoders keep their memory; each is used by one goroutine at a time.
package libopus

import "errors"

const (
	// Rate is the number of samples per second.
	Rate = 48000
	// FrameSamples is how many samples are encoded at a time: 20 ms.
	FrameSamples = Rate / 50
	// MaxSamples is what a packet has at most: 120 ms (RFC 6716 section 3.2.5).
	MaxSamples = Rate * 120 / 1000
	// MaxPacket is the size of the largest packet that is decoded, in bytes: what fits a datagram.
	MaxPacket = 1500
)

// Errors of this package.
var (
	// ErrUnavailable says how to build a program that has Opus. It is the reason wherever Available is false.
	ErrUnavailable = errors.New("built without Opus; build with CGO_ENABLED=1 after apt-get install gcc libopus-dev")
	// ErrMalformed says that a packet is no Opus.
	ErrMalformed = errors.New("malformed Opus packet")
)
