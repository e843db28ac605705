//go:build cgo && !portable

package rgbd

import (
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/webp"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/test/allocations"
	"github.com/volsfu/volsfu/test/race"
)

// TestNoAllocations checks that frames allocate nothing in steady state. Go's image/jpeg, which programs without cgo
// use, allocates.
func TestNoAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector makes sync.Pool allocate")
	}
	c := posed(pinhole(200, 150))
	m, e, d := scene(&c, 1), new(encoder), new(decoder)
	var frame []byte
	var cloud pointcloud.Cloud
	var raster codec.Raster
	for i := range 2 * (codec.MaxReduction + 1) {
		p := whole(&c, 0.001)
		p.Reduction, p.WebP = i/2, i%2 != 0 && webp.Available() == nil
		if n := allocations.PerCall(20, func() {
			var err error
			if frame, _, err = e.EncodeRaster(frame[:0], &c, m, p); err != nil {
				t.Fatal(err)
			}
			if err = d.Decode(&cloud, frame); err != nil {
				t.Fatal(err)
			}
			if err = d.DecodeRaster(&raster, frame); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("reduction %d, WebP %v: %.1f allocations per frame, want none", p.Reduction, p.WebP, n)
		}
	}
}
