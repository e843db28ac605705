package libopus

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec/codectest"
)

// sung returns frames of a tone of 440 Hz.
func sung(frames int) []float32 {
	samples := make([]float32, frames*FrameSamples)
	for i := range samples {
		samples[i] = 0.25 * float32(math.Sin(2*math.Pi*440*float64(i)/Rate))
	}
	return samples
}

func coders(t testing.TB) (*Encoder, *Decoder) {
	t.Helper()
	if !Available() {
		t.Skipf("skipped: %v", ErrUnavailable)
	}
	e, err := NewEncoder(64_000)
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
	samples, size := sung(50), 0
	for i := 0; i < len(samples); i += FrameSamples {
		packet := e.Encode([]byte("before"), samples[i:][:FrameSamples])
		size += len(packet) - 6
		var err error
		if got, err = d.Decode(got, packet[6:]); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != len(samples) {
		t.Fatalf("%d samples, expected %d", len(got), len(samples))
	}
	// The output is the input, delayed by the lookahead.
	late := e.Lookahead()
	worst := 0.0
	for i := Rate / 4; i+late < len(got); i++ {
		worst = max(worst, math.Abs(float64(got[i+late]-samples[i])))
	}
	if late != Rate/400 || worst > 0.02 {
		t.Errorf("%d samples later, samples are off by %.3f", late, worst)
	}
	if rate := 8 * size; rate < 20_000 || rate > 90_000 {
		t.Errorf("a second takes %d bits", rate)
	}
	for name, more := range map[string]func([]float32) []float32{
		"made up": func(dst []float32) []float32 { return d.Conceal(dst, 480) },
		"recovered": func(dst []float32) []float32 {
			return d.Recover(dst, e.Encode(nil, samples[:FrameSamples]),
				480)
		},
	} {
		if a := amplitude(more(got)[len(got):]); a < 0.05 || a > 0.3 {
			t.Errorf("what is %s has an amplitude of %.2f", name, a)
		}
	}
	if n := len(d.Recover(got, nil, 480)) - len(got); n != 480 {
		t.Errorf("%d samples are recovered from nothing, expected 480", n)
	}
	// The result for a length that Opus does not support is silence.
	if odd := d.Conceal(got, 100)[len(got):]; len(odd) != 100 || amplitude(odd) != 0 {
		t.Errorf("%d samples of amplitude %.2f", len(odd), amplitude(odd))
	}
}

func TestMalformed(t *testing.T) {
	_, d := coders(t)
	for name, packet := range map[string][]byte{
		"nothing": nil, "too many frames": {0xff, 0xff}, "too long": make([]byte, MaxPacket+1),
		"lengths that are not there": {0x02, 0xff},
	} {
		if got, err := d.Decode(make([]float32, 3), packet); !errors.Is(err, ErrMalformed) || len(got) != 3 {
			t.Errorf("%s: %d samples, %v", name, len(got)-3, err)
		}
	}
}

func TestAllocations(t *testing.T) {
	e, d := coders(t)
	samples, packet, got := sung(1), []byte(nil), []float32(nil)
	n := testing.AllocsPerRun(100, func() {
		packet = e.Encode(packet[:0], samples)
		got, _ = d.Decode(got[:0], packet)
		got = d.Conceal(got, FrameSamples)
	})
	if n != 0 {
		t.Errorf("%g allocations, expected none", n)
	}
}

func FuzzDecode(f *testing.F) {
	e, d := coders(f)
	f.Add(e.Encode(nil, sung(1)))
	f.Add(bytes.Repeat([]byte{0x7b}, 200))
	f.Add([]byte{0xff, 0x06, 1, 2, 3})
	f.Fuzz(func(t *testing.T, packet []byte) {
		var got []float32
		var err error
		codectest.Within(t, len(packet), func() { got, err = d.Decode(nil, packet) })
		if err != nil && !errors.Is(err, ErrMalformed) {
			t.Error(err)
		}
		if len(got) > MaxSamples {
			t.Errorf("%d samples", len(got))
		}
		if got = d.Recover(got[:0], packet, FrameSamples); len(got) != FrameSamples {
			t.Errorf("%d samples are recovered, expected %d", len(got), FrameSamples)
		}
	})
}
