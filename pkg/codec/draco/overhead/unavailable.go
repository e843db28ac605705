//go:build !cgo || portable

package overhead

import (
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/draco"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// Measure returns draco.ErrUnavailable, because this program was built without Draco.
func Measure(*pointcloud.Cloud, codec.Params, int) (encode, decode Measurement, err error) {
	return encode, decode, draco.ErrUnavailable
}
