package testbed

import (
	"slices"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestVerify(t *testing.T) {
	load := Load{Name: "body", Tiles: 3, Qualities: 2, FrameBytes: 500, Rate: 30}
	genuine := slices.Clone(newFrameFactory(load, 1).frame(7, 2, 1))
	tests := []struct {
		name    string
		change  func(frame []byte) []byte
		number  int64
		tile    int
		quality volumetric.Quality
		genuine bool
	}{
		{"as it was sent", nil, 7, 2, 1, true},
		{"under a number that was extended", nil, 7 + 1<<32, 2, 1, true},
		{"of another frame", nil, 8, 2, 1, false},
		{"of another tile", nil, 7, 1, 1, false},
		{"of another quality", nil, 7, 2, 0, false},
		{"one bit wrong at the end", func(f []byte) []byte { f[len(f)-1] ^= 1; return f }, 7, 2, 1, false},
		{"one bit wrong in the checksum", func(f []byte) []byte { f[14] ^= 0x80; return f }, 7, 2, 1, false},
		{"cut short", func(f []byte) []byte { return f[:len(f)-1] }, 7, 2, 1, false},
		{"longer", func(f []byte) []byte { return append(f, 0) }, 7, 2, 1, false},
		{"two bytes exchanged", func(f []byte) []byte { f[100], f[101] = f[101], f[100]; return f }, 7, 2, 1,
			genuine[100] == genuine[101]},
		{"empty", func([]byte) []byte { return nil }, 7, 2, 1, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			frame := slices.Clone(genuine)
			if test.change != nil {
				frame = test.change(frame)
			}
			if err := verify(frame, test.number, test.tile, test.quality); (err == nil) != test.genuine {
				t.Errorf("got %v, want genuine %v", err, test.genuine)
			}
		})
	}
}

func TestLoadSizes(t *testing.T) {
	tests := []struct {
		name string
		load Load
		want []int
	}{
		{"alike", Load{Qualities: 3, FrameBytes: 1000}, []int{1000, 1000, 1000}},
		{"graded", Load{Qualities: 3, FrameBytes: 8000, Step: 2}, []int{2000, 4000, 8000}},
		{"too small for what a frame says of itself", Load{Qualities: 2, FrameBytes: 20, Step: 2},
			[]int{frameHeader, 20}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.load.Tiles, test.load.Rate = 1, 10
			factory := newFrameFactory(test.load, 1)
			description := test.load.Publication()
			for q, want := range test.want {
				frame := factory.frame(1, 0, volumetric.Quality(q))
				if len(frame) != want || verify(frame, 1, 0, volumetric.Quality(q)) != nil {
					t.Errorf("frame of quality %d has %d bytes, want %d, genuine", q, len(frame), want)
				}
				if got := description.Qualities[q].Bitrate; got != volumetric.Bitrate(80*want) {
					t.Errorf("quality %d is announced with %v, want %v", q, got, 80*want)
				}
			}
		})
	}
}

func TestVariation(t *testing.T) {
	const frames, mean = 1000, 5000
	load := Load{Tiles: 2, Qualities: 2, FrameBytes: mean, Step: 2, Variation: 0.2, Rate: 10}
	factory, again := newFrameFactory(load, 1), newFrameFactory(load, 1)
	sum, least, most := 0, mean, mean
	for number := range uint32(frames) {
		frame := factory.frame(number, 1, 1)
		if err := verify(frame, int64(number), 1, 1); err != nil {
			t.Fatal(err)
		}
		size := len(frame)
		if other := len(again.frame(number, 1, 1)); other != size {
			t.Fatalf("frame %d has %d bytes, then %d with the same seed", number, size, other)
		}
		if half := factory.size(number, 1, 0); half < size/2-1 || half > size/2+1 {
			t.Fatalf("frame %d has %d bytes, %d at half the quality", number, size, half)
		}
		sum, least, most = sum+size, min(least, size), max(most, size)
	}
	if least < 0.8*mean || least > 0.81*mean || most > 1.2*mean || most < 1.19*mean {
		t.Errorf("frames of %d to %d bytes, want about %g to %g", least, most, 0.8*mean, 1.2*mean)
	}
	if average := sum / frames; average < 0.98*mean || average > 1.02*mean {
		t.Errorf("%d bytes on average, want about %d", average, mean)
	}
}
