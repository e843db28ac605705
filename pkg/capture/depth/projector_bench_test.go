package depth

import (
	"fmt"
	"testing"

	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// BenchmarkProject projects depth and colours of a real seated person, 512 × 424, to a cloud
// without background.
func BenchmarkProject(b *testing.B) {
	m := seatedImage(b, "000")
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			options := DefaultOptions()
			options.Background = Background{
				Near: 0.5207,
				Far:  1.25961,
				Box:  volumetric.BoundingBox{Min: [3]float32{-1, -1, -1.2}, Max: [3]float32{1, 1, 0}},
			}
			options.Threads = threads
			p, err := NewProjector(seated, options)
			if err != nil {
				b.Fatal(err)
			}
			var cloud pointcloud.Cloud
			b.ReportAllocs()
			for b.Loop() {
				cloud.Reset()
				if err := p.Project(m, &cloud); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cloud.Len()), "points")
		})
	}
}
