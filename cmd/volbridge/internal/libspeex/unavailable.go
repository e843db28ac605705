//go:build !cgo

package libspeex

// Available reports whether this program was built with Speex.
func Available() bool { return false }

// Encoder is a placeholder without an implementation.
type Encoder struct{}

// NewEncoder returns ErrUnavailable.
func NewEncoder() (*Encoder, error) { return nil, ErrUnavailable }

// Encode is never called.
func (*Encoder) Encode(dst []byte, _ []float32) []byte { return dst }

// Lookahead is never called.
func (*Encoder) Lookahead() int { return 0 }

// Decoder is a placeholder without an implementation.
type Decoder struct{}

// NewDecoder returns ErrUnavailable.
func NewDecoder() (*Decoder, error) { return nil, ErrUnavailable }

// Decode is never called.
func (*Decoder) Decode(dst []float32, _ []byte) ([]float32, error) { return dst, ErrUnavailable }

// Conceal is never called.
func (*Decoder) Conceal(dst []float32, _ int) []float32 { return dst }

// Lookahead is never called.
func (*Decoder) Lookahead() int { return 0 }
