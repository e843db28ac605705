//go:build cgo && !portable

package draco

import (
	"encoding/binary"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/pkg/codec/draco/yardstick"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

func FuzzDecode(f *testing.F) {
	for _, points := range []int{1, 3, 200} {
		for speed := range 11 {
			for _, way := range ways {
				params := way
				params.PositionBits, params.Speed, params.Box = 6+2*speed, speed, roundBox
				frame, err := newEncoder().Encode(nil, surface(points), params)
				if err != nil {
					f.Fatal(err)
				}
				f.Add(frame)
			}
		}
	}
	codectest.Seeds(f, draco{}.FourCC())
	f.Fuzz(func(t *testing.T, data []byte) {
		var cloud pointcloud.Cloud
		if codectest.Decode(t, decoder{}, &cloud, data) != nil {
			return
		}
		if len(data) == 0 {
			return
		}
		// Draco accepts every frame that this decoder accepts, with the same result.
		decoded, err := yardstick.Decode(data)
		if err != nil {
			t.Fatalf("%d points decoded that Draco refuses: %v", cloud.Len(), err)
		}
		if err := codectest.Same(&cloud, decoded); err != nil {
			t.Fatalf("Draco decodes another cloud: %v", err)
		}
		for _, p := range cloud.Positions {
			if (p[0]-p[0])+(p[1]-p[1])+(p[2]-p[2]) != 0 {
				t.Fatalf("%v is not in space", p)
			}
		}
	})
}

func FuzzEncode(f *testing.F) {
	for way := range uint8(4) {
		f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, uint8(11), uint8(4), way)
		f.Add(make([]byte, 900), uint8(8), uint8(10), way)
		f.Add(binary.LittleEndian.AppendUint64(make([]byte, 600), 0x0123456789abcdef), uint8(19), uint8(0), way)
	}
	e := newEncoder()
	f.Fuzz(func(t *testing.T, data []byte, bits, speed, way uint8) {
		var cloud pointcloud.Cloud
		for ; len(data) >= 6; data = data[6:] {
			p := [3]float32{}
			for axis := range p {
				p[axis] = roundBox.Min[axis] + float32(data[axis])/255*(roundBox.Max[axis]-roundBox.Min[axis])
			}
			cloud.Append(p, [3]uint8(data[3:6]))
		}
		params := ways[int(way)%len(ways)]
		params.PositionBits, params.Speed, params.Box = 1+int(bits)%30, int(speed)%11, roundBox
		frame, err := e.Encode(nil, &cloud, params)
		if err != nil {
			t.Fatal(err)
		}
		var decoded pointcloud.Cloud
		if err := (decoder{}).Decode(&decoded, frame); err != nil {
			t.Fatal(err)
		}
		if err := codectest.Same(&decoded, codectest.Quantized(&cloud, params)); err != nil {
			t.Fatal(err)
		}
	})
}
