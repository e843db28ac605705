package libspeex

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec/codectest"
)

// spoken returns frames of a tone: 440 Hz at 48,000 samples per second.
func spoken(frames int) []float32 {
	samples := make([]float32, frames*FrameSamples)
	for i := range samples {
		samples[i] = 0.25 * float32(math.Sin(2*math.Pi*440*float64(i)/48000))
	}
	return samples
}

func coders(t testing.TB) (*Encoder, *Decoder) {
	t.Helper()
	if !Available() {
		t.Skipf("skipped: %v", ErrUnavailable)
	}
	e, err := NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	d, err := NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	return e, d
}

// amplitude returns the amplitude of a tone from its samples.
func amplitude(samples []float32) float64 {
	power := 0.0
	for _, v := range samples {
		power += float64(v) * float64(v)
	}
	return math.Sqrt(2 * power / float64(len(samples)))
}

func TestThereAndBack(t *testing.T) {
	e, d := coders(t)
	var got []float32
	samples := spoken(150)
	for i := 0; i < len(samples); i += 3 * FrameSamples {
		packet := e.Encode([]byte("before"), samples[i:][:3*FrameSamples])
		if len(packet) != 6+3*FrameBytes {
			t.Fatalf("%d bytes, expected %d", len(packet)-6, 3*FrameBytes)
		}
		var err error
		if got, err = d.Decode(got, packet[6:]); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != len(samples) {
		t.Fatalf("%d samples, expected %d", len(got), len(samples))
	}
	if a := amplitude(got[len(got)/4:]); math.Abs(a-0.25) > 0.05 {
		t.Errorf("amplitude %.2f, expected 0.25", a)
	}
	if e.Lookahead() <= 0 || d.Lookahead() <= 0 {
		t.Errorf("looks ahead by %d and %d samples", e.Lookahead(), d.Lookahead())
	}
	before := len(got)
	got = d.Conceal(got, 3)
	if a := amplitude(got[before:]); len(got) != before+3*FrameSamples || a < 0.05 || a > 0.3 {
		t.Errorf("what is made up has %d samples and an amplitude of %.2f", len(got)-before, a)
	}
}

// TestVR2GathersFrames decodes packets of VR2Gather's own encoder.
func TestVR2GathersFrames(t *testing.T) {
	_, d := coders(t)
	var samples []float32
	for _, packet := range theirs {
		data, err := hex.DecodeString(packet)
		if err != nil {
			t.Fatal(err)
		}
		if samples, err = d.Decode(samples, data); err != nil {
			t.Fatal(err)
		}
	}
	if a := amplitude(samples[len(samples)/2:]); len(samples) != 15*FrameSamples || math.Abs(a-0.25) > 0.06 {
		t.Errorf("%d samples with an amplitude of %.2f, expected 0.25", len(samples), a)
	}
}

func TestMalformed(t *testing.T) {
	_, d := coders(t)
	for name, packet := range map[string][]byte{
		"a mode that there is not": bytes.Repeat([]byte{0x48}, 42),
		"cut":                      bytes.Repeat([]byte{0x2a}, 20),
		"too many frames":          make([]byte, 8192),
		"too long":                 make([]byte, 8193),
	} {
		if got, err := d.Decode(make([]float32, 3), packet); !errors.Is(err, ErrMalformed) || len(got) != 3 {
			t.Errorf("%s: %d samples, %v", name, len(got)-3, err)
		}
	}
	for name, packet := range map[string][]byte{"nothing": nil, "the end": {0x7f}} {
		if got, err := d.Decode(nil, packet); err != nil || len(got) != 0 {
			t.Errorf("%s: %d samples, %v", name, len(got), err)
		}
	}
}

func TestAllocations(t *testing.T) {
	e, d := coders(t)
	samples, packet, got := spoken(3), []byte(nil), []float32(nil)
	n := testing.AllocsPerRun(100, func() {
		packet = e.Encode(packet[:0], samples)
		got, _ = d.Decode(got[:0], packet)
		got = d.Conceal(got, 1)
	})
	if n != 0 {
		t.Errorf("%g allocations, expected none", n)
	}
}

func FuzzDecode(f *testing.F) {
	e, d := coders(f)
	f.Add(e.Encode(nil, spoken(3)))
	f.Add(e.Encode(nil, spoken(1))[:30])
	f.Add([]byte{0x48, 0x00, 0xff})
	f.Fuzz(func(t *testing.T, packet []byte) {
		var got []float32
		var err error
		codectest.Within(t, len(packet), func() { got, err = d.Decode(nil, packet) })
		if err != nil && !errors.Is(err, ErrMalformed) {
			t.Error(err)
		}
		if len(got)%FrameSamples != 0 || len(got) > MaxFrames*FrameSamples {
			t.Errorf("%d samples", len(got))
		}
	})
}

// theirs has the first five packets, 20 ms each, of the tone as encoded by VR2Gather, in hexadecimal.
var theirs = []string{
	"2d647607cf00007fffffffffff92043fffffffffffd71dffff3b915557e2b462cdddff9671c93bf001002d6a2146b14d67a027ffff" +
		"fdbfa5f18546fa97ffffd2b1e2f6c8f6f7fff0366a064f5fedb679380000002d7a6d46b0efb33f10f7528c1325e1635ff8d3ff9bee" +
		"27752e90739b51697ad475d5ad7ffff938000000",
	"2d7a6d46ad83b2628a76f2d3f15ce1029d685059d5ae79d8daf7ffd830770e2cbab6d6f5e209380000002d6a2146adb9619e5a725e" +
		"845e5c51eec75d7f993b60fc8ed585bfce15a98a7ab3526ec3fed9380000002d6a21446f8265b775b3fe75bfa6630c9479f5ffffee" +
		"3762d29ff6ce27770e31694ff9e60fb938000000",
	"2d686d446fb8735e30ffff6fffdc790b183ff55bb9e099e25d69dadbfff04cbc4fead9fffe09380000002d686d446e4a798baa9855" +
		"387fc1329c763aff1efbee1c314ed3531c10773cafb5434fffe2f9380000002d6a21446eb897d59d7ffe76badc152018b0abfed4d3" +
		"44ef8c9fe385fff0766e73083ff5b6d938000000",
	"2d6a2146afefb20b4e09c77a5fc1d91b7c4fbf4f5e60ec94a8c5bffe3ff70e41298263bf8c79380000002d7a6d46ae83b2559a93a7" +
		"69d35c4fae435b7ffff9ee4c8bf69fd3ea38570be097b7ffce4039380000002d7a6d46ac83b2a015b387fb57a63113f6ab8cfffb6e" +
		"25a29da95e041b770e10fb417f97776938000000",
	"2d6a2146aeb8e9a02c16ebff675c5186ce23adfff4e0fc8ce337fffe9c09825ea26604adfed9380000002d6a0d446f827609d5baeb" +
		"f9dfa6eb32ea67dcbe79d375d854779cff3ff715da2a1cb4c7a069380000002d686d446fb8ae55755fa6765bdcdf72cf59afb631ee" +
		"59df0cbeac4ecbf72cd392ff9672ce2938000000",
}
