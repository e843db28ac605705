package produce

import (
	"context"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/codec"
	_ "github.com/volsfu/volsfu/pkg/codec/draco" // registers itself
	"github.com/volsfu/volsfu/pkg/codec/ladder"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// free is a codec without cost, so that only the work of this package is measured.
type free struct{}

func (free) FourCC() codec.FourCC      { return codec.FourCC{'f', 'r', 'e', 'e'} }
func (free) Name() string              { return "free" }
func (free) NewEncoder() codec.Encoder { return free{} }
func (free) NewDecoder() codec.Decoder { return nil }

func (free) Capabilities() codec.Capabilities { return codec.Capabilities{} }

func (free) Encode(dst []byte, _ *pointcloud.Cloud, _ codec.Params) ([]byte, error) {
	return dst, nil
}

// BenchmarkEncode encodes one frame of the demonstration: 40,000 points in 4 tiles at 3 qualities.
func BenchmarkEncode(b *testing.B) {
	codecs := []codec.Codec{free{}, codec.Raw}
	if draco, err := codec.ByName("draco"); err == nil {
		codecs = append(codecs, draco)
	}
	for _, c := range codecs {
		for _, workers := range []int{1, 2} {
			b.Run(c.Name()+"/"+string(rune('0'+workers)),
				func(b *testing.B) { benchmark(b, c, workers, "low,mid,high") })
		}
	}
	b.Run("voxels", func(b *testing.B) { benchmark(b, free{}, 1, "low=v20mm,mid=v10mm,high") })
}

func benchmark(b *testing.B, c codec.Codec, workers int, qualities string) {
	source, err := capture.Open("synthetic", capture.DefaultOptions())
	if err != nil {
		b.Fatal(err)
	}
	levels, err := ladder.ParseLevels(qualities)
	if err != nil {
		b.Fatal(err)
	}
	e, err := newEncoder(Config{Tiling: pointcloud.TilingSpec{Tiles: 4}, Levels: levels,
		Mode: volumetric.ModeAlternatives, Codec: c, Box: source.Info().Box, Workers: workers})
	if err != nil {
		b.Fatal(err)
	}
	defer e.close()
	var frame capture.Frame
	if err := source.Read(context.Background(), &frame); err != nil {
		b.Fatal(err)
	}
	e.encode(&frame, time.Time{}, 0, nowhere{})
	e.order()
	b.ReportAllocs()
	b.ResetTimer()
	bytes := 0
	for range b.N {
		bytes = e.encode(&frame, time.Time{}, 0, nowhere{}).bytes
	}
	b.ReportMetric(float64(bytes)*8*30/1e6, "Mbit/s")
}
