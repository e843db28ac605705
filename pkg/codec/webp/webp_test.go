package webp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/test/allocations"
	"github.com/volsfu/volsfu/test/race"
)

// gradient returns an image without sharp edges.
func gradient(width, height int) []byte {
	pixels := make([]byte, 0, channels*width*height)
	for y := range height {
		for x := range width {
			pixels = append(pixels, uint8(128+100*math.Sin(float64(x)/30)), uint8(128+100*math.Cos(float64(y)/20)),
				uint8(90+x%3))
		}
	}
	return pixels
}

// mustEncode encodes, or skips the test without libwebp.
func mustEncode(t testing.TB, width, height, quality int) []byte {
	t.Helper()
	data, err := new(Encoder).Append([]byte("x"), gradient(width, height), width, height, quality)
	if errors.Is(err, ErrUnavailable) {
		t.Skipf("skipped: %v", err)
	}
	if err != nil || data[0] != 'x' {
		t.Fatalf("%q, %v", data[:1], err)
	}
	return data[1:]
}

// TestRoundTrip checks the errors of decoded images of all parities of sizes, and that Go and libwebp decode the same.
func TestRoundTrip(t *testing.T) {
	var encoder Encoder
	var decoder Decoder
	for _, size := range [][2]int{{1, 1}, {2, 1}, {1, 3}, {16, 16}, {17, 33}, {230, 175}} {
		mustEncode(t, size[0], size[1], 80)
		want := gradient(size[0], size[1])
		last := math.Inf(1)
		for _, quality := range []int{1, 50, 90} {
			data, err := encoder.Append(nil, want, size[0], size[1], quality)
			if err != nil {
				t.Fatal(err)
			}
			got, portable := make([]byte, len(want)), make([]byte, len(want))
			if err := decoder.Decode(got, data, size[0], size[1]); err != nil {
				t.Fatal(err)
			}
			if err := decodePortably(portable, data, size[0], size[1]); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, portable) {
				t.Errorf("%v, quality %d: Go decodes other pixels than libwebp", size, quality)
			}
			sum := 0.0
			for i := range want {
				sum += math.Pow(float64(got[i])-float64(want[i]), 2)
			}
			mse := sum / float64(len(want))
			if mse > last+3 || quality == 90 && mse > 40 {
				t.Errorf("%v, quality %d: mean square error is %.1f, want at most %.1f", size, quality, mse,
					min(40, last+3))
			}
			last = mse
		}
	}
}

// TestColors checks that colours return within the precision of 8 bits.
func TestColors(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		color := [channels]byte{byte(random.IntN(256)), byte(random.IntN(256)), byte(random.IntN(256))}
		var p planes
		p.reset(3, 3)
		pixels := bytes.Repeat(color[:], 9)
		p.fromPixels(pixels)
		back := make([]byte, len(pixels))
		toPixels(back, p.luma, 3, p.blue, p.red, p.chroma(), 3)
		for i, v := range back {
			if d := int(v) - int(pixels[i]); d < -4 || d > 4 {
				t.Fatalf("%v returns as %v", color, back[:channels])
			}
		}
	}
}

// TestMalformed checks headers with a wrong value, and truncated files.
func TestMalformed(t *testing.T) {
	data := mustEncode(t, 40, 30, 80)
	decode := func(data []byte) error {
		return errors.Join(new(Decoder).Decode(make([]byte, channels*40*30), data, 40, 30), Check(data, 40, 30))
	}
	if err := decode(data); err != nil {
		t.Fatal(err)
	}
	for at := range sizesAt + 4 {
		changed := slices.Clone(data)
		// The tag also contains a version, a flag and the size of a partition; a frame with others may be valid.
		if at > frameAt && at < startAt {
			continue
		}
		changed[at] ^= 1
		if err := decode(changed); !errors.Is(err, codec.ErrMalformed) {
			t.Errorf("byte %d: %v, want an error around ErrMalformed", at, err)
		}
	}
	for size := range data {
		if err := decode(data[:size]); !errors.Is(err, codec.ErrMalformed) {
			t.Errorf("%d bytes: %v, want an error around ErrMalformed", size, err)
		}
		shorter := slices.Clone(data[:size&^1])
		if size >= leastFile {
			binary.LittleEndian.PutUint32(shorter[4:], uint32(len(shorter)-8))
			binary.LittleEndian.PutUint32(shorter[chunkAt+4:], uint32(len(shorter)-frameAt))
			// Bits behind the end may not matter.
			if err := decode(shorter); err != nil && !errors.Is(err, codec.ErrMalformed) {
				t.Errorf("%d bytes with these sizes: %v, want none or one around ErrMalformed", size, err)
			}
		}
	}
	if err := decode(append(slices.Clone(data), 0, 0)); !errors.Is(err, codec.ErrMalformed) {
		t.Errorf("bytes behind the file: %v, want an error around ErrMalformed", err)
	}
}

// TestNoAllocations checks that images allocate nothing on Go's heap in steady state.
func TestNoAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector makes sync.Pool allocate")
	}
	mustEncode(t, 100, 80, 80)
	var encoder Encoder
	var decoder Decoder
	pixels := gradient(100, 80)
	var data []byte
	if n := allocations.PerCall(20, func() {
		var err error
		if data, err = encoder.Append(data[:0], pixels, 100, 80, 80); err != nil {
			t.Fatal(err)
		}
		if err = decoder.Decode(pixels, data, 100, 80); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%.1f allocations per image, want none", n)
	}
}

// FuzzDecode expects an error or pixels of both decoders.
func FuzzDecode(f *testing.F) {
	data, err := new(Encoder).Append(nil, gradient(20, 10), 20, 10, 60)
	if err == nil {
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Add([]byte("RIFF\x16\x00\x00\x00WEBPVP8 \x0a\x00\x00\x00\x00\x00\x00\x9d\x01\x2a\x14\x00\x0a\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		pixels := make([]byte, channels*20*10)
		if err := new(Decoder).Decode(pixels, data, 20, 10); err != nil && !errors.Is(err, codec.ErrMalformed) {
			t.Fatal(err)
		}
		if Check(data, 20, 10) != nil {
			return
		}
		if err := decodePortably(pixels, data, 20, 10); err != nil && !errors.Is(err, codec.ErrMalformed) {
			t.Fatal(err)
		}
	})
}
