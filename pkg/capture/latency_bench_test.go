package capture

import (
	"fmt"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/rgbd"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// BenchmarkDepthToCloud measures the processing of one frame of a live depth camera, from its
// images to a cloud: depth and colours of a real seated person, 512 × 424, without background,
// flying pixels and specks, points in random order, all of them or 40,000.
func BenchmarkDepthToCloud(b *testing.B) {
	folder, err := rgbd.OpenFolder(testData(b, "seated-human", "rgbd"))
	if err != nil {
		b.Fatal(err)
	}
	camera, err := folder.Intrinsics().Camera("seated")
	if err != nil {
		b.Fatal(err)
	}
	images := make([]depth.Image, 8)
	for i := range images {
		if err := folder.LoadImage(6*i, &images[i]); err != nil {
			b.Fatal(err)
		}
	}
	for _, threads := range []int{1, 2} {
		for _, points := range []int{0, 40_000} {
			b.Run(fmt.Sprintf("threads=%d/points=%d", threads, points), func(b *testing.B) {
				options := depth.DefaultOptions()
				options.Background.Near, options.Background.Far = folder.Intrinsics().Near, folder.Intrinsics().Far
				options.Threads = threads
				p, err := depth.NewProjector(camera, options)
				if err != nil {
					b.Fatal(err)
				}
				var cloud pointcloud.Cloud
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					cloud.Reset()
					if err := p.Project(&images[i%len(images)], &cloud); err != nil {
						b.Fatal(err)
					}
					scatter(&cloud, points, 0, i)
				}
				b.ReportMetric(float64(cloud.Len()), "points")
			})
		}
	}
}
