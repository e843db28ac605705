// Package libspeex encodes and decodes Speex wideband as VR2Gather uses it for audio (VR2A), with Xiph's library, which
// is linked by cgo from Debian's libspeex-dev.
//
// VR2Gather's codec has frames of 320 samples at quality 5, 42 bytes each. A packet has several frames. The codec is
// given samples of 48 kHz as if they were of 16 kHz, for which the mode is designed: a frame lasts 6.7 ms, and the
// mode's bandwidth of 8 kHz becomes 24 kHz. Samples have one channel, between -1 and 1.
//
// Encoders and decoders have state. Each is used by one goroutine at a time.
package libspeex

import "errors"

const (
	// FrameSamples is the number of samples of a frame.
	FrameSamples = 320
	// FrameBytes is the size of an encoded frame: 300 bits of the lower half of the spectrum and 36 of the upper one.
	FrameBytes = 42
	// MaxFrames is the largest number of frames of a packet: 320 ms of VR2Gather's audio, 16 times the duration of its
	// packets.
	MaxFrames = 48
)

// Errors of this package.
var (
	// ErrUnavailable is returned if Available returns false. The text explains how to build a program with Speex.
	ErrUnavailable = errors.New("built without Speex; build with CGO_ENABLED=1 after apt-get install gcc libspeex-dev")
	// ErrMalformed is returned for a packet that is not valid Speex or has more than MaxFrames.
	ErrMalformed = errors.New("malformed Speex packet")
)
