//go:build !cgo || portable

package dracojpeg

import (
	"fmt"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/jpeg"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// Available reports whether this program encodes with the codec.
func Available() bool { return false }

func init() { codec.Register(decoding{}) }

// decoding is the codec of a program that only decodes.
type decoding struct{}

func (decoding) FourCC() codec.FourCC      { return codec.FourCC{'d', 'r', 'c', 'j'} }
func (decoding) Name() string              { return "draco+jpeg" }
func (decoding) NewEncoder() codec.Encoder { return refusal{} }
func (decoding) NewDecoder() codec.Decoder {
	return newDecoder(new(jpeg.Decoder))
}
func (decoding) Capabilities() codec.Capabilities {
	c := geometry.Capabilities()
	c.ExactColors = false
	return c
}

// refusal is the encoder of a program that only decodes.
type refusal struct{}

// Encode returns an error that wraps codec.ErrParams.
func (refusal) Encode(dst []byte, _ *pointcloud.Cloud, _ codec.Params) ([]byte, error) {
	return dst, fmt.Errorf("encode draco+jpeg: %w: %w", codec.ErrParams, ErrUnavailable)
}

// EncodeOrdered returns an error that wraps codec.ErrParams.
func (r refusal) EncodeOrdered(
	dst []byte,
	order []uint32,
	cloud *pointcloud.Cloud,
	params codec.Params,
) ([]byte, []uint32, error) {
	dst, err := r.Encode(dst, cloud, params)
	return dst, order[:0], err
}
