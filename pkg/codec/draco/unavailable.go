//go:build !cgo

package draco

import (
	"fmt"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// Available reports whether this program was built with Draco's library, which encodes point clouds and decodes meshes.
func Available() bool { return false }

func init() { codec.Register(decoding{}) }

// decoding is the codec of a program that only decodes point clouds.
type decoding struct{}

func (decoding) FourCC() codec.FourCC      { return codec.FourCC{'d', 'r', 'c', 'o'} }
func (decoding) Name() string              { return "draco" }
func (decoding) NewEncoder() codec.Encoder { return refusal{} }
func (decoding) NewDecoder() codec.Decoder { return portableDecoder{} }
func (decoding) Capabilities() codec.Capabilities {
	return codec.Capabilities{Colors: true, ExactColors: true, Steps: []int{0}, MaxPoints: MaxPoints}
}

// refusal is the encoder of a program that only decodes.
type refusal struct{}

// Encode returns an error that wraps codec.ErrParams.
func (refusal) Encode(dst []byte, _ *pointcloud.Cloud, _ codec.Params) ([]byte, error) {
	return dst, fmt.Errorf("encode draco: %w: %w", codec.ErrParams, ErrUnavailable)
}
