//go:build !cgo

package libopus

const remedy = "build with CGO_ENABLED=1 after apt-get install gcc libopus-dev"

// Available reports whether this program was built with Opus.
func Available() bool { return false }

// Encoder is a placeholder without an implementation.
type Encoder struct{}

// NewEncoder returns ErrUnavailable.
func NewEncoder(int) (*Encoder, error) { return nil, ErrUnavailable }

// Close is never called.
func (*Encoder) Close() {}

// Encode is never called.
func (*Encoder) Encode(dst []byte, _ []float32) []byte { return dst }

// Lookahead is never called.
func (*Encoder) Lookahead() int { return 0 }

// Decoder is a placeholder without an implementation.
type Decoder struct{}

// NewDecoder returns ErrUnavailable.
func NewDecoder() (*Decoder, error) { return nil, ErrUnavailable }

// Close is never called.
func (*Decoder) Close() {}

// Decode is never called.
func (*Decoder) Decode(dst []float32, _ []byte) ([]float32, error) { return dst, ErrUnavailable }

// Recover is never called.
func (*Decoder) Recover(dst []float32, _ []byte, _ int) []float32 { return dst }

// Conceal is never called.
func (*Decoder) Conceal(dst []float32, _ int) []float32 { return dst }
