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

// Available tells whether this program was built with Speex.
func Available() bool { return true }

// quality is VR2Gather's, of 0 to 10.
const quality = 5

// maxPacket is more than MaxFrames take at the highest quality, 106 bytes each.
const maxPacket = 8192

// Encoder encodes one stream of sound.
type Encoder struct{ speech *C.volsfu_speech }

// NewEncoder makes an encoder. It fails where there is no memory.
func NewEncoder() (*Encoder, error) {
	e := &Encoder{C.volsfu_speech_encoder(quality)}
	if e.speech == nil {
		return nil, fmt.Errorf("%w: it makes no encoder", ErrUnavailable)
	}
	runtime.AddCleanup(e, func(s *C.volsfu_speech) { C.volsfu_speech_free_encoder(s) }, e.speech)
	return e, nil
}

// Encode appends to dst a packet of samples, whose number is a multiple of FrameSamples and at most MaxFrames of those.
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

// Lookahead is how many samples what is decoded is behind what was encoded, as far as the encoder is the reason.
func (e *Encoder) Lookahead() int {
	n := int(C.volsfu_speech_encoder_lookahead(e.speech))
	runtime.KeepAlive(e)
	return n
}

// Decoder decodes one stream of sound.
type Decoder struct{ speech *C.volsfu_speech }

// NewDecoder makes a decoder. It fails where there is no memory.
func NewDecoder() (*Decoder, error) {
	d := &Decoder{C.volsfu_speech_decoder()}
	if d.speech == nil {
		return nil, fmt.Errorf("%w: it makes no decoder", ErrUnavailable)
	}
	runtime.AddCleanup(d, func(s *C.volsfu_speech) { C.volsfu_speech_free_decoder(s) }, d.speech)
	return d, nil
}

// Decode appends to dst the samples of a packet, a multiple of FrameSamples; none of one that is empty. Errors wrap
// ErrMalformed, and leave dst as it was.
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

// Conceal appends to dst what may have been in so many frames that are lost.
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

// Lookahead is how many samples what is decoded is behind what was encoded, as far as the decoder is the reason.
func (d *Decoder) Lookahead() int {
	n := int(C.volsfu_speech_decoder_lookahead(d.speech))
	runtime.KeepAlive(d)
	return n
}
