package transcode

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/draco"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// BenchmarkDraco is what one frame of 40,000 points on the surface of a body takes one worker: up is from cwi0 to Draco, down is back.
func BenchmarkDraco(b *testing.B) {
	if !draco.Available() {
		b.Skip("skipped: built without Draco")
	}
	c, err := codec.ByName("draco")
	if err != nil {
		b.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	cloud := &pointcloud.Cloud{}
	for range 40_000 {
		turn, height := 2*math.Pi*random.Float64(), 1.8*random.Float64()
		position := [3]float32{float32(0.3 * math.Cos(turn)), float32(height), float32(0.2 * math.Sin(turn))}
		cloud.Append(position, [3]uint8{uint8(100 * height), uint8(20 * turn), 80})
	}
	raw, err := codec.CWI0.NewEncoder().Encode(nil, cloud, exactly(cloud.Bounds()))
	if err != nil {
		b.Fatal(err)
	}
	p, u := NewPacker(c), NewUnpacker()
	packed, err := p.Pack(nil, raw)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("up", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if packed, err = p.Pack(packed[:0], raw); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(8*len(packed))/float64(cloud.Len()), "bits/point")
	})
	var frame []byte
	b.Run("down", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if frame, err = u.Unpack(frame[:0], c.FourCC(), packed, capture); err != nil {
				b.Fatal(err)
			}
		}
	})
}
