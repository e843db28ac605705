//go:build cgo && !portable

package rgbd

import (
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// TestNoAllocations checks that frames allocate nothing in steady state. Go's image/jpeg, which programs without cgo
// use, allocates.
func TestNoAllocations(t *testing.T) {
	c := posed(pinhole(200, 150))
	m, e, d := scene(&c, 1), new(encoder), new(decoder)
	var frame []byte
	var cloud pointcloud.Cloud
	var raster codec.Raster
	for reduction := range codec.MaxReduction + 1 {
		p := whole(&c, 0.001)
		p.Reduction = reduction
		if allocations := testing.AllocsPerRun(20, func() {
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
		}); allocations > 0 {
			t.Errorf("reduction %d: %.1f allocations per frame, want none", reduction, allocations)
		}
	}
}
