//go:build cgo && !portable

package overhead_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/pkg/codec/draco/overhead"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

func TestMeasure(t *testing.T) {
	cloud := codectest.Cloud(1, 2000)
	for _, params := range []codec.Params{{}, {NoColors: true}, {Sequential: true}} {
		params.PositionBits, params.Speed, params.Box = 11, 7, codectest.Box
		encode, decode, err := overhead.Measure(cloud, params, 2)
		if err != nil {
			t.Fatal(err)
		}
		for what, m := range map[string]overhead.Measurement{"encode": encode, "decode": decode} {
			if m.Codec <= 0 || m.Core <= 0 || m.Draco <= 0 || m.Bytes < 2000 || m.DracoBytes < 2000 {
				t.Errorf("%+v, %s: got %+v, want times and sizes", params, what, m)
			}
			// Other activity of this process counts, too.
			if m.AllocatedBytes > 2000 {
				t.Errorf(
					"%+v, %s: %g bytes allocated per frame, want no copy of %d points",
					params,
					what,
					m.AllocatedBytes,
					cloud.Len(),
				)
			}
		}
	}
}

func TestMeasureNothing(t *testing.T) {
	params := codec.Params{PositionBits: 11, Box: codectest.Box}
	for name, run := range map[string]func() error{
		"no points": func() error { _, _, err := overhead.Measure(new(pointcloud.Cloud), params, 1); return err },
		"no turns":  func() error { _, _, err := overhead.Measure(codectest.Cloud(1, 3), params, 0); return err },
		"parameters": func() error {
			_, _, err := overhead.Measure(codectest.Cloud(1, 3), codec.Params{}, 1)
			return err
		},
	} {
		if err := run(); !errors.Is(err, codec.ErrParams) {
			t.Errorf("%s: got %v, want ErrParams", name, err)
		}
	}
}

// BenchmarkOverhead reports the overhead of Go, and the times next to Draco's encoder and decoder
// in C++.
func BenchmarkOverhead(b *testing.B) {
	whole := codectest.RealCloud(b)
	cloud := codectest.Sampled(whole, 40_000)
	for _, way := range []codec.Params{{}, {NoColors: true}, {Sequential: true}} {
		for _, speed := range []int{0, 7, 10} {
			params := way
			params.PositionBits, params.Speed, params.Box = 11, speed, whole.Bounds()
			b.Run(
				fmt.Sprintf("speed%d/colors=%v/sequential=%v", speed, !params.NoColors, params.Sequential),
				func(b *testing.B) {
					for b.Loop() {
						encode, decode, err := overhead.Measure(cloud, params, 15)
						if err != nil {
							b.Fatal(err)
						}
						for what, m := range map[string]overhead.Measurement{"enc": encode, "dec": decode} {
							b.ReportMetric(100*m.Overhead, what+"-go-%")
							b.ReportMetric(float64(m.Codec)/float64(m.Draco), what+"/draco")
							b.ReportMetric(float64(m.Codec)/float64(cloud.Len()), what+"-ns/point")
						}
						b.ReportMetric(float64(8*encode.Bytes)/float64(cloud.Len()), "bits/point")
						b.ReportMetric(float64(encode.Bytes)/float64(encode.DracoBytes), "bytes/draco")
					}
				},
			)
		}
	}
}
