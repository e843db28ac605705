package codectest

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func testParams(t *testing.T, c codec.Codec) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	good := codec.Params{PositionBits: 11, Speed: 5, Box: Box}
	cases := map[string]func(p *codec.Params){
		"no bits":         func(p *codec.Params) { p.PositionBits = 0 },
		"31 bits":         func(p *codec.Params) { p.PositionBits = 31 },
		"speed -1":        func(p *codec.Params) { p.Speed = -1 },
		"speed 11":        func(p *codec.Params) { p.Speed = 11 },
		"quality -1":      func(p *codec.Params) { p.ColorQuality = -1 },
		"quality 101":     func(p *codec.Params) { p.ColorQuality = 101 },
		"no box":          func(p *codec.Params) { p.Box = volumetric.BoundingBox{} },
		"box inside out":  func(p *codec.Params) { p.Box.Min[1], p.Box.Max[1] = p.Box.Max[1], p.Box.Min[1] },
		"infinite corner": func(p *codec.Params) { p.Box.Max[2] = inf },
		"infinite edge":   func(p *codec.Params) { p.Box.Min[0], p.Box.Max[0] = -math.MaxFloat32, math.MaxFloat32 },
		"NaN corner":      func(p *codec.Params) { p.Box.Min[0] = nan },
	}
	before := []byte("before")
	for name, spoil := range cases {
		params := good
		spoil(&params)
		after, err := c.NewEncoder().Encode(before, Cloud(1, 10), params)
		if !errors.Is(err, codec.ErrParams) || !bytes.Equal(after, before) {
			t.Errorf("%s: got %q, %v, want dst unchanged and ErrParams", name, after, err)
		}
	}
	uneven := Cloud(1, 10)
	uneven.Colors = uneven.Colors[:9]
	if _, err := c.NewEncoder().Encode(nil, uneven, good); !errors.Is(err, codec.ErrParams) {
		t.Errorf("9 colours for 10 positions: got %v, want ErrParams", err)
	}
}

// testMalformed truncates frames, extends them and flips their bits. Decoding must either succeed, or return an error
// that wraps ErrMalformed or ErrUnknown without points. Decoding must never crash.
func testMalformed(t *testing.T, c codec.Codec) {
	random := rand.New(rand.NewPCG(3, 3))
	decoder := c.NewDecoder()
	cloud := new(pointcloud.Cloud)
	decode := func(what string, data []byte) error {
		err := decoder.Decode(cloud, data)
		if err != nil &&
			(!errors.Is(err, codec.ErrMalformed) && !errors.Is(err, codec.ErrUnknown) || cloud.Len() != 0 ||
				len(cloud.Colors) != 0) {
			t.Fatalf("%s: %d points and %v, want none and ErrMalformed or ErrUnknown", what, cloud.Len(), err)
		}
		return err
	}
	for _, variant := range variants(c) {
		for _, speed := range speeds(c, variant) {
			params := with(variant, 11, speed)
			frame := mustEncode(t, c.NewEncoder(), Cloud(1, 100), params)
			for cut := 1; cut < len(frame); cut++ {
				if decode("cut", frame[:cut]) == nil {
					t.Fatalf("%+v: a frame of %d bytes decodes when cut to %d", params, len(frame), cut)
				}
			}
			if decode("longer", append(slices.Clone(frame), 0)) == nil {
				t.Fatalf("%+v: a frame decodes with a byte behind it", params)
			}
			for range 200 {
				spoilt := slices.Clone(frame)
				for range 1 + random.IntN(4) {
					spoilt[random.IntN(len(spoilt))] ^= 1 << random.IntN(8)
				}
				_ = decode("flipped", spoilt)
			}
		}
	}
}
