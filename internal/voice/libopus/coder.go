//go:build cgo

package libopus

// #cgo CFLAGS: -O2 -std=c11 -Wall -Wextra
// #cgo noescape volsfu_opus_encode
// #cgo nocallback volsfu_opus_encode
// #cgo noescape volsfu_opus_decode
// #cgo nocallback volsfu_opus_decode
// #include "coder.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"unsafe"
)

// Available reports whether this program has Opus.
var Available = sync.OnceValue(func() bool { return C.volsfu_opus_load() != 0 })

// errEncoder and errDecoder mean that there is not enough memory.
var (
	errEncoder = errors.New("libopus: no memory for an encoder")
	errDecoder = errors.New("libopus: no memory for a decoder")
)

// Encoder encodes one audio stream.
type Encoder struct {
	coder   *C.OpusEncoder
	cleanup runtime.Cleanup
}

// NewEncoder returns an encoder with the given bitrate. NewEncoder fails if there is not enough memory.
func NewEncoder(bitsPerSecond int) (*Encoder, error) {
	if !Available() {
		return nil, ErrUnavailable
	}
	e := &Encoder{coder: C.volsfu_opus_encoder(Rate, C.int(bitsPerSecond))}
	if e.coder == nil {
		return nil, errEncoder
	}
	e.cleanup = runtime.AddCleanup(e, func(c *C.OpusEncoder) { C.volsfu_opus_encoder_destroy(c) }, e.coder)
	return e, nil
}

// Close frees the encoder, which must not be used afterwards. An encoder without references is freed, too.
func (e *Encoder) Close() {
	e.cleanup.Stop()
	C.volsfu_opus_encoder_destroy(e.coder)
	e.coder = nil
}

// Encode appends to dst a packet of FrameSamples samples.
func (e *Encoder) Encode(dst []byte, samples []float32) []byte {
	if len(samples) != FrameSamples {
		panic(fmt.Sprintf("libopus: %d samples, expected %d", len(samples), FrameSamples))
	}
	begin := len(dst)
	dst = slices.Grow(dst, MaxPacket)[:begin+MaxPacket]
	size := C.volsfu_opus_encode(e.coder, (*C.float)(&samples[0]), FrameSamples, (*C.uchar)(&dst[begin]), MaxPacket)
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
type Decoder struct {
	coder   *C.OpusDecoder
	cleanup runtime.Cleanup
}

// NewDecoder returns a decoder. NewDecoder fails if there is not enough memory.
func NewDecoder() (*Decoder, error) {
	if !Available() {
		return nil, ErrUnavailable
	}
	d := &Decoder{coder: C.volsfu_opus_decoder(Rate)}
	if d.coder == nil {
		return nil, errDecoder
	}
	d.cleanup = runtime.AddCleanup(d, func(c *C.OpusDecoder) { C.volsfu_opus_decoder_destroy(c) }, d.coder)
	return d, nil
}

// Close frees the decoder, which must not be used afterwards. A decoder without references is freed, too.
func (d *Decoder) Close() {
	d.cleanup.Stop()
	C.volsfu_opus_decoder_destroy(d.coder)
	d.coder = nil
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
	n := C.volsfu_opus_decode(d.coder, (*C.uchar)(unsafe.SliceData(packet)), C.int(len(packet)),
		(*C.float)(&into[begin]), C.int(room), lost)
	runtime.KeepAlive(d)
	if n < 0 {
		return dst, int(n)
	}
	return into[:begin+int(n)], int(n)
}
