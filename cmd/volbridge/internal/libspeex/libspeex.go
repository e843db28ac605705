// Package libspeex is Speex's wideband mode as VR2Gather uses it for sound (VR2A), by Xiph's library, which is linked
// in by cgo against Debian's libspeex-dev.
//
// VR2Gather's codec has frames of 320 samples at quality 5, 42 bytes each, one behind the other in a packet, and is
// given samples of 48 kHz as if they were of the 16 kHz that the mode is made for: a frame lasts 6.7 ms, and what the
// mode keeps up to 8 kHz it keeps up to 24 kHz here. Samples are those of one channel between -1 and 1.
//
// Encoders and decoders keep their memory; each is used by one goroutine at a time.
package libspeex

import "errors"

const (
	// FrameSamples is how many samples a frame has.
	FrameSamples = 320
	// FrameBytes is the size of an encoded frame: 300 bits of the lower half of the spectrum and 36 of the upper one.
	FrameBytes = 42
	// MaxFrames is how many frames a packet may have: 320 ms of VR2Gather's sound, 16 times what it sends.
	MaxFrames = 48
)

// Errors of this package.
var (
	// ErrUnavailable says how to build a program that has Speex. It is the reason wherever Available is false.
	ErrUnavailable = errors.New("built without Speex; build with CGO_ENABLED=1 after apt-get install gcc libspeex-dev")
	// ErrMalformed says that a packet is no Speex, or has more than MaxFrames.
	ErrMalformed = errors.New("malformed Speex packet")
)
