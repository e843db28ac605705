//go:build cgo && !portable

package draco

import (
	"fmt"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/pkg/codec/draco/yardstick"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// bench runs a benchmark on samples of a real capture at the speeds that are coded differently.
func bench(b *testing.B, run func(b *testing.B, cloud *pointcloud.Cloud, params codec.Params)) {
	whole := codectest.RealCloud(b)
	for _, points := range []int{10_000, 20_000, 40_000} {
		cloud := codectest.Sampled(whole, points)
		for _, speed := range []int{4, 5, 7, 10} {
			b.Run(fmt.Sprintf("%d/speed%d", points, speed), func(b *testing.B) {
				b.ReportAllocs()
				run(b, cloud, codec.Params{PositionBits: 11, Speed: speed, Box: whole.Bounds()})
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(points), "ns/point")
			})
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	bench(b, func(b *testing.B, cloud *pointcloud.Cloud, params codec.Params) {
		e := newEncoder()
		var frame []byte
		for b.Loop() {
			frame, _ = e.Encode(frame[:0], cloud, params)
		}
		b.ReportMetric(float64(8*len(frame))/float64(cloud.Len()), "bits/point")
	})
}

func BenchmarkDecode(b *testing.B) {
	bench(b, func(b *testing.B, cloud *pointcloud.Cloud, params codec.Params) {
		frame, err := newEncoder().Encode(nil, cloud, params)
		if err != nil {
			b.Fatal(err)
		}
		var into pointcloud.Cloud
		for b.Loop() {
			if err := (decoder{}).Decode(&into, frame); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkReferenceEncode(b *testing.B) {
	bench(b, func(b *testing.B, cloud *pointcloud.Cloud, params codec.Params) {
		var frame []byte
		for b.Loop() {
			frame, _ = yardstick.Encode(cloud, params)
		}
		b.ReportMetric(float64(8*len(frame))/float64(cloud.Len()), "bits/point")
	})
}

func BenchmarkReferenceDecode(b *testing.B) {
	bench(b, func(b *testing.B, cloud *pointcloud.Cloud, params codec.Params) {
		frame, err := yardstick.Encode(cloud, params)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := yardstick.Decode(frame); err != nil {
				b.Fatal(err)
			}
		}
	})
}
