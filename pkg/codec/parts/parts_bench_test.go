package parts_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/pkg/codec/parts"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// dense returns a capture of a real person with 100,000 points in random order: the points of the
// capture, and some of them again, displaced by a few millimetres.
func dense(b *testing.B) (*pointcloud.Cloud, codec.Params) {
	whole := codectest.RealCloud(b)
	cloud := new(pointcloud.Cloud)
	for i := 0; cloud.Len() < 100_000; i++ {
		p, aside := whole.Positions[i%whole.Len()], float32(i/whole.Len())*0.003
		cloud.Append([3]float32{p[0] + aside, p[1] + aside, p[2] - aside}, whole.Colors[i%whole.Len()])
	}
	return codectest.Sampled(cloud, 100_000), codec.Params{PositionBits: 11, Speed: 7, Box: cloud.Bounds()}
}

// BenchmarkSplits compares the cost in bits of ways to divide points in random order into parts.
func BenchmarkSplits(b *testing.B) {
	draco, err := codec.ByName("draco")
	if err != nil {
		b.Skip("skipped: built without Draco")
	}
	cloud, params := dense(b)
	for _, count := range []int{1, 2, 4, 8} {
		for _, random := range []bool{false, true} {
			b.Run(fmt.Sprintf("parts%d/random=%v", count, random), func(b *testing.B) {
				var bytes int
				for b.Loop() {
					bytes = 0
					if !random {
						bytes = len(encoded(b, parts.New(parts.Config{Inner: draco, Parts: count}), cloud, params))
						continue
					}
					for i := range count {
						part := cloud.View(i*cloud.Len()/count, (i+1)*cloud.Len()/count)
						bytes += len(encoded(b, draco, &part, params))
					}
				}
				b.ReportMetric(float64(8*bytes)/float64(cloud.Len()), "bits/point")
			})
		}
	}
}

// BenchmarkLatency measures the time for 100,000 points: whole, in four parts on two threads, and
// as four tiles on two threads.
func BenchmarkLatency(b *testing.B) {
	draco, err := codec.ByName("draco")
	if err != nil {
		b.Skip("skipped: built without Draco")
	}
	cloud, params := dense(b)
	pool := parts.NewPool(1)
	ways := map[string]codec.Codec{
		"whole":  draco,
		"parts4": parts.New(parts.Config{Inner: draco, Parts: 4, Pool: pool}),
		"parts2": parts.New(parts.Config{Inner: draco, Parts: 2, Pool: pool}),
	}
	for name, c := range ways {
		encoder, decoder := c.NewEncoder(), c.NewDecoder()
		var frame []byte
		var into pointcloud.Cloud
		b.Run("encode/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				frame, _ = encoder.Encode(frame[:0], cloud, params)
			}
		})
		b.Run("decode/"+name, func(b *testing.B) {
			b.ReportAllocs()
			frame, _ = encoder.Encode(frame[:0], cloud, params)
			for b.Loop() {
				_ = decoder.Decode(&into, frame)
			}
		})
	}
	tiles := make([]pointcloud.Cloud, 4)
	tiling, err := pointcloud.NewTiling(4, cloud.Bounds())
	if err != nil {
		b.Fatal(err)
	}
	tiling.Split(cloud, tiles)
	frames := make([][]byte, 4)
	both := func(do func(worker, tile int)) {
		var group sync.WaitGroup
		for worker := range 2 {
			group.Go(func() {
				for tile := worker; tile < 4; tile += 2 {
					do(worker, tile)
				}
			})
		}
		group.Wait()
	}
	encoders, decoders := []codec.Encoder{
		draco.NewEncoder(),
		draco.NewEncoder(),
	}, []codec.Decoder{
		draco.NewDecoder(),
		draco.NewDecoder(),
	}
	encode := func(worker, tile int) {
		frames[tile], _ = encoders[worker].Encode(frames[tile][:0], &tiles[tile], params)
	}
	b.Run("encode/tiles4", func(b *testing.B) {
		for b.Loop() {
			both(encode)
		}
	})
	b.Run("decode/tiles4", func(b *testing.B) {
		both(encode)
		decoded := make([]pointcloud.Cloud, 4)
		for b.Loop() {
			both(func(worker, tile int) { _ = decoders[worker].Decode(&decoded[tile], frames[tile]) })
		}
	})
}
