//go:build !cgo

package libspeex

// Available tells whether this program was built with Speex.
func Available() bool { return false }

// Encoder is one that there is not.
type Encoder struct{}

// NewEncoder gives ErrUnavailable.
func NewEncoder() (*Encoder, error) { return nil, ErrUnavailable }

// Encode is never called.
func (*Encoder) Encode(dst []byte, _ []float32) []byte { return dst }

// Lookahead is never called.
func (*Encoder) Lookahead() int { return 0 }

// Decoder is one that there is not.
type Decoder struct{}

// NewDecoder gives ErrUnavailable.
func NewDecoder() (*Decoder, error) { return nil, ErrUnavailable }

// Decode is never called.
func (*Decoder) Decode(dst []float32, _ []byte) ([]float32, error) { return dst, ErrUnavailable }

// Conceal is never called.
func (*Decoder) Conceal(dst []float32, _ int) []float32 { return dst }

// Lookahead is never called.
func (*Decoder) Lookahead() int { return 0 }
