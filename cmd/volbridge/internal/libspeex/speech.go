//go:build cgo

package libspeex

// #cgo CFLAGS: -O2 -std=c11 -Wall -Wextra
// #cgo LDFLAGS: -l:libspeex.a -lm
// #cgo noescape volsfu_speech_encode
// #cgo nocallback volsfu_speech_encode
// #cgo noescape volsfu_speech_decode
// #cgo nocallback volsfu_speech_decode
// #cgo noescape volsfu_speech_conceal
// #cgo nocallback volsfu_speech_conceal
// #include "speech.h"
import "C"

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"
)

// Available reports whether this program was built with Speex.
func Available() bool { return true }

// quality is VR2Gather's quality, on Speex's scale of 0 to 10.
const quality = 5

// maxPacket exceeds the size of MaxFrames frames at the highest quality, 106 bytes each.
const maxPacket = 8192

// Encoder encodes one audio stream.
type Encoder struct{ speech *C.volsfu_speech }

// NewEncoder returns an encoder. NewEncoder fails if there is not enough memory.
func NewEncoder() (*Encoder, error) {
	e := &Encoder{C.volsfu_speech_encoder(quality)}
	if e.speech == nil {
		return nil, fmt.Errorf("%w: the library returned no encoder", ErrUnavailable)
	}
	runtime.AddCleanup(e, func(s *C.volsfu_speech) { C.volsfu_speech_free_encoder(s) }, e.speech)
	return e, nil
}

// Encode appends a packet to dst. The number of samples must be a multiple of FrameSamples and at most MaxFrames ×
// FrameSamples.
func (e *Encoder) Encode(dst []byte, samples []float32) []byte {
	frames := len(samples) / FrameSamples
	if frames == 0 || frames > MaxFrames || len(samples)%FrameSamples != 0 {
		panic(fmt.Sprintf("libspeex: %d samples are not 1 to %d frames", len(samples), MaxFrames))
	}
	begin := len(dst)
	dst = slices.Grow(dst, frames*FrameBytes)[:begin+frames*FrameBytes]
	size := C.volsfu_speech_encode(e.speech, (*C.float)(unsafe.SliceData(samples)), C.int(frames),
		(*C.uint8_t)(&dst[begin]), C.int(frames*FrameBytes))
	runtime.KeepAlive(e)
	return dst[:begin+int(size)]
}

// Lookahead returns the encoder's part of the codec delay in samples.
func (e *Encoder) Lookahead() int {
	n := int(C.volsfu_speech_encoder_lookahead(e.speech))
	runtime.KeepAlive(e)
	return n
}

// Decoder decodes one audio stream.
type Decoder struct{ speech *C.volsfu_speech }

// NewDecoder returns a decoder. NewDecoder fails if there is not enough memory.
func NewDecoder() (*Decoder, error) {
	d := &Decoder{C.volsfu_speech_decoder()}
	if d.speech == nil {
		return nil, fmt.Errorf("%w: the library returned no decoder", ErrUnavailable)
	}
	runtime.AddCleanup(d, func(s *C.volsfu_speech) { C.volsfu_speech_free_decoder(s) }, d.speech)
	return d, nil
}

// Decode appends the samples of a packet to dst, a multiple of FrameSamples; none for an empty packet. Errors wrap
// ErrMalformed and leave dst unchanged.
func (d *Decoder) Decode(dst []float32, packet []byte) ([]float32, error) {
	if len(packet) > maxPacket {
		return dst, fmt.Errorf("%w: %d bytes, expected at most %d", ErrMalformed, len(packet), maxPacket)
	}
	if len(packet) == 0 {
		return dst, nil
	}
	begin := len(dst)
	room := slices.Grow(dst, MaxFrames*FrameSamples)[:begin+MaxFrames*FrameSamples]
	frames := C.volsfu_speech_decode(d.speech, (*C.uint8_t)(&packet[0]), C.int(len(packet)), (*C.float)(&room[begin]),
		MaxFrames)
	runtime.KeepAlive(d)
	if frames < 0 {
		return dst, fmt.Errorf("%w of %d bytes", ErrMalformed, len(packet))
	}
	return room[:begin+int(frames)*FrameSamples], nil
}

// Conceal appends samples to dst that conceal the given number of lost frames.
func (d *Decoder) Conceal(dst []float32, frames int) []float32 {
	if frames <= 0 {
		return dst
	}
	begin := len(dst)
	dst = slices.Grow(dst, frames*FrameSamples)[:begin+frames*FrameSamples]
	C.volsfu_speech_conceal(d.speech, (*C.float)(&dst[begin]), C.int(frames))
	runtime.KeepAlive(d)
	return dst
}

// Lookahead returns the decoder's part of the codec delay in samples.
func (d *Decoder) Lookahead() int {
	n := int(C.volsfu_speech_decoder_lookahead(d.speech))
	runtime.KeepAlive(d)
	return n
}
