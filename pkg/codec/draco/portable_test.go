//go:build cgo

package draco

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// portable is the codec with the decoder of programs without cgo.
type portable struct{ draco }

func (portable) NewDecoder() codec.Decoder { return portableDecoder{} }

// TestPortable runs the tests of every codec on the decoder in Go.
func TestPortable(t *testing.T) { codectest.TestUnregistered(t, portable{}) }

// FuzzPortable expects the same cloud or an error from both decoders.
func FuzzPortable(f *testing.F) {
	for speed := range 11 {
		for _, way := range ways {
			params := way
			params.PositionBits, params.Speed, params.Box = 6+2*speed, speed, roundBox
			frame, err := newEncoder().Encode(nil, surface(200), params)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(frame)
		}
	}
	codectest.Seeds(f, draco{}.FourCC())
	f.Fuzz(func(t *testing.T, data []byte) {
		got, want := new(pointcloud.Cloud), new(pointcloud.Cloud)
		err := codectest.Decode(t, portableDecoder{}, got, data)
		if errors.Is(decoder{}.Decode(want, data), codec.ErrMalformed) != (err != nil) ||
			!slices.Equal(got.Positions, want.Positions) || !slices.Equal(got.Colors, want.Colors) {
			t.Fatalf("%d points and %v, want the %d points of the decoder with cgo", got.Len(), err, want.Len())
		}
	})
}

// BenchmarkPortable compares the decoder in Go with that in C++, for 40,000 points of a real capture.
func BenchmarkPortable(b *testing.B) {
	cloud := codectest.Sampled(codectest.RealCloud(b), 40_000)
	for _, speed := range []int{0, 5, 7, 10} {
		params := codec.Params{PositionBits: 11, Speed: speed, Box: cloud.Bounds()}
		frame, err := newEncoder().Encode(nil, cloud, params)
		if err != nil {
			b.Fatal(err)
		}
		for name, d := range map[string]codec.Decoder{"C++": decoder{}, "Go": portableDecoder{}} {
			b.Run(fmt.Sprintf("speed %d/%s", speed, name), func(b *testing.B) {
				decoded := new(pointcloud.Cloud)
				b.ReportAllocs()
				for b.Loop() {
					if err := d.Decode(decoded, frame); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(cloud.Len()), "ns/point")
			})
		}
	}
}
