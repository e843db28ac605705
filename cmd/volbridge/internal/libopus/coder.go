//go:build cgo

package libopus

// #cgo CFLAGS: -O2 -std=c11 -Wall -Wextra
// #cgo LDFLAGS: -l:libopus.a -lm
// #cgo noescape opus_encode_float
// #cgo nocallback opus_encode_float
// #cgo noescape opus_decode_float
// #cgo nocallback opus_decode_float
// #include "coder.h"
import "C"

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"
)

// Available reports whether this program was built with Opus.
func Available() bool { return true }

// Encoder encodes one audio stream.
type Encoder struct{ coder *C.OpusEncoder }

// NewEncoder returns an encoder with the given bitrate. NewEncoder fails if there is not enough memory.
func NewEncoder(bitsPerSecond int) (*Encoder, error) {
	e := &Encoder{C.volsfu_opus_encoder(Rate, C.int(bitsPerSecond))}
	if e.coder == nil {
		return nil, fmt.Errorf("%w: the library returned no encoder", ErrUnavailable)
	}
	runtime.AddCleanup(e, func(c *C.OpusEncoder) { C.opus_encoder_destroy(c) }, e.coder)
	return e, nil
}

// Encode appends to dst a packet of FrameSamples samples.
func (e *Encoder) Encode(dst []byte, samples []float32) []byte {
	if len(samples) != FrameSamples {
		panic(fmt.Sprintf("libopus: %d samples, expected %d", len(samples), FrameSamples))
	}
	begin := len(dst)
	dst = slices.Grow(dst, MaxPacket)[:begin+MaxPacket]
	size := C.opus_encode_float(e.coder, (*C.float)(&samples[0]), FrameSamples, (*C.uchar)(&dst[begin]), MaxPacket)
	runtime.KeepAlive(e)
	if size < 0 {
		panic(fmt.Sprintf("libopus: the encoder fails with %d although its arguments are right", size))
	}
	return dst[:begin+int(size)]
}

// Lookahead returns the delay of the encoder in samples.
func (e *Encoder) Lookahead() int {
	n := int(C.volsfu_opus_lookahead(e.coder))
	runtime.KeepAlive(e)
	return n
}

// Decoder decodes one audio stream.
type Decoder struct{ coder *C.OpusDecoder }

// NewDecoder returns a decoder. NewDecoder fails if there is not enough memory.
func NewDecoder() (*Decoder, error) {
	var status C.int
	d := &Decoder{C.opus_decoder_create(Rate, 1, &status)}
	if d.coder == nil {
		return nil, fmt.Errorf("%w: the library returned no decoder: %d", ErrUnavailable, status)
	}
	runtime.AddCleanup(d, func(c *C.OpusDecoder) { C.opus_decoder_destroy(c) }, d.coder)
	return d, nil
}

// Decode appends the samples of a packet to dst. Errors wrap ErrMalformed and leave dst unchanged.
func (d *Decoder) Decode(dst []float32, packet []byte) ([]float32, error) {
	if len(packet) == 0 || len(packet) > MaxPacket {
		return dst, fmt.Errorf("%w: %d bytes, expected 1 to %d", ErrMalformed, len(packet), MaxPacket)
	}
	samples, n := d.decode(dst, packet, MaxSamples, false)
	if n < 0 {
		return dst, fmt.Errorf("%w of %d bytes: %d", ErrMalformed, len(packet), n)
	}
	return samples, nil
}

// Recover appends samples of a lost packet to dst, from the forward error correction in the next packet. Recover
// conceals the loss if the encoder did not include any. samples must be a multiple of 2.5 ms and at most MaxSamples.
func (d *Decoder) Recover(dst []float32, next []byte, samples int) []float32 {
	if len(next) == 0 || len(next) > MaxPacket {
		return d.Conceal(dst, samples)
	}
	if recovered, n := d.decode(dst, next, samples, true); n == samples {
		return recovered
	}
	return append(dst, make([]float32, samples)...)
}

// Conceal appends samples to dst that conceal lost packets. samples must be a multiple of 2.5 ms and at most
// MaxSamples.
func (d *Decoder) Conceal(dst []float32, samples int) []float32 {
	if concealed, n := d.decode(dst, nil, samples, false); n == samples {
		return concealed
	}
	return append(dst, make([]float32, samples)...)
}

// decode appends the decoded samples to dst, at most room. decode returns their number, or a negative error code of the
// library.
func (d *Decoder) decode(dst []float32, packet []byte, room int, before bool) ([]float32, int) {
	begin := len(dst)
	into := slices.Grow(dst, room)[:begin+room]
	lost := C.int(0)
	if before {
		lost = 1
	}
	n := C.opus_decode_float(d.coder, (*C.uchar)(unsafe.SliceData(packet)), C.opus_int32(len(packet)),
		(*C.float)(&into[begin]), C.int(room), lost)
	runtime.KeepAlive(d)
	if n < 0 {
		return dst, int(n)
	}
	return into[:begin+int(n)], int(n)
}
