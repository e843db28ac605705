package rgbd

import (
	"github.com/volsfu/volsfu/pkg/codec"
)

// Codec is the codec.
var Codec codec.Codec = rgbd{}

func init() { codec.Register(Codec) }

type rgbd struct{}

func (rgbd) FourCC() codec.FourCC { return codec.FourCC{'r', 'g', 'b', 'd'} }
func (rgbd) Name() string         { return "rgbd" }
func (rgbd) Capabilities() codec.Capabilities {
	return codec.Capabilities{Rasters: true, Colors: true, Steps: []int{0}, MaxPoints: codec.MaxPoints}
}
func (rgbd) NewEncoder() codec.Encoder { return new(encoder) }
func (rgbd) NewDecoder() codec.Decoder { return new(decoder) }
