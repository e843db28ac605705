package transcode

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/libopus"
	"github.com/volsfu/volsfu/cmd/volbridge/internal/libspeex"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

const (
	// frameSamples is 20 ms.
	frameSamples = libopus.FrameSamples
	frameTime    = 20 * time.Millisecond
	// pitch is the tone of tests in Hz, loudness its amplitude: 12 dB below what there is at most.
	pitch, loudness = 440, 0.25
)

// tone is so many frames of a tone, from a sample on.
func tone(from, frames int) []float32 {
	samples := make([]float32, frames*frameSamples)
	for i := range samples {
		samples[i] = loudness * float32(math.Sin(2*math.Pi*pitch*float64(from+i)/libopus.Rate))
	}
	return samples
}

// component is the amplitude of a frequency in samples, by correlation with it.
func component(samples []float32, hertz float64) float64 {
	var re, im float64
	for i, v := range samples {
		sin, cos := math.Sincos(2 * math.Pi * hertz * float64(i) / libopus.Rate)
		re, im = re+float64(v)*cos, im+float64(v)*sin
	}
	return 2 * math.Hypot(re, im) / float64(len(samples))
}

// sameTone fails where samples, the first fifth of a second aside, are not the tone of tests: as loud within so many
// decibels, of that frequency, and of hardly anything else.
func sameTone(t *testing.T, samples []float32, decibels float64) {
	t.Helper()
	if len(samples) < libopus.Rate/2 {
		t.Fatalf("%d samples, expected half a second", len(samples))
	}
	samples = samples[libopus.Rate/5:]
	power := 0.0
	for _, v := range samples {
		power += float64(v) * float64(v)
	}
	total := math.Sqrt(2 * power / float64(len(samples)))
	at := component(samples, pitch)
	if off := 20 * math.Log10(at/loudness); math.Abs(off) > decibels {
		t.Errorf("the tone is off by %.1f dB, expected at most %g", off, decibels)
	}
	for _, other := range []float64{pitch - 10, pitch + 10} {
		if component(samples, other) > at/2 {
			t.Errorf("%g Hz is nearly as loud as %d Hz", other, pitch)
		}
	}
	// Speex adds noise of its own; a tone that was garbled would have most of its power elsewhere.
	if share := at / total; share < 0.9 {
		t.Errorf("%.0f %% of the amplitude is the tone's", 100*share)
	}
}

// asLoud fails where samples are not as loud as the tone within so many decibels, in the mean of stretches of 20 ms:
// what was made up is out of step with it, and so is Speex for a while after that.
func asLoud(t *testing.T, samples []float32, decibels float64) {
	t.Helper()
	sum, count := 0.0, 0
	for ; len(samples) >= frameSamples; samples = samples[frameSamples:] {
		sum += component(samples[:frameSamples], pitch)
		count++
	}
	if off := 20 * math.Log10(sum/float64(count)/loudness); math.Abs(off) > decibels {
		t.Errorf("the tone is off by %.1f dB, expected at most %g", off, decibels)
	}
}

// sounding skips a test in programs that transcode no sound.
func sounding(t testing.TB) {
	t.Helper()
	if err := SoundAvailable(); err != nil {
		t.Skipf("skipped: %v", err)
	}
}

// teller makes VR2Gather's frames of the tone.
type teller struct {
	t       testing.TB
	encoder *libspeex.Encoder
	fourCC  codec.FourCC
	number  uint32
}

func newTeller(t testing.TB, fourCC codec.FourCC) *teller {
	encoder, err := libspeex.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	return &teller{t: t, encoder: encoder, fourCC: fourCC}
}

// next is the next frame of 20 ms, which ends at a time.
func (w *teller) next(end time.Time) Said {
	samples := tone(int(w.number)*frameSamples, 1)
	var data []byte
	if w.fourCC == vr2gather.CodecVoice {
		data = w.encoder.Encode(nil, samples)
	} else {
		for _, v := range samples {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
	}
	w.number++
	return Said{Number: w.number, Codec: w.fourCC, Data: data, End: end, Came: end.Add(5 * time.Millisecond)}
}

// opusEar decodes what a speaker makes.
type opusEar struct {
	t       testing.TB
	decoder *libopus.Decoder
	samples []float32
	times   []time.Time
}

func newOpusEar(t testing.TB) *opusEar {
	decoder, err := libopus.NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	return &opusEar{t: t, decoder: decoder}
}

func (e *opusEar) hear(s *Speaker) {
	for p, ok := s.Next(); ok; p, ok = s.Next() {
		var err error
		if e.samples, err = e.decoder.Decode(e.samples, p.Packet); err != nil {
			e.t.Fatal(err)
		}
		e.times = append(e.times, p.Capture)
	}
}

// speexEar reads what a listener makes.
type speexEar struct {
	t       testing.TB
	decoder *libspeex.Decoder
	samples []float32
	ends    []time.Time
}

func newSpeexEar(t testing.TB) *speexEar {
	decoder, err := libspeex.NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	return &speexEar{t: t, decoder: decoder}
}

func (e *speexEar) hear(l *Listener, now time.Time, raw bool) {
	for made, ok := l.Next(now, raw); ok; made, ok = l.Next(now, raw) {
		var header vr2gather.FrameHeader
		data, err := header.Parse(made.Frame)
		if err != nil {
			e.t.Fatal(err)
		}
		if raw {
			for ; len(data) > 0; data = data[4:] {
				e.samples = append(e.samples, math.Float32frombits(binary.LittleEndian.Uint32(data)))
			}
		} else {
			// The memory of VR2Gather's decoder is ten times the bytes of the first packet: all must have as many.
			if len(data) != 3*libspeex.FrameBytes || header.FourCC != vr2gather.CodecVoice {
				e.t.Fatalf("%d bytes of %v, expected %d", len(data), header.FourCC, 3*libspeex.FrameBytes)
			}
			if e.samples, err = e.decoder.Decode(e.samples, data); err != nil {
				e.t.Fatal(err)
			}
		}
		e.ends = append(e.ends, header.Capture())
	}
}

// singer makes packets of Opus of the tone, as a client that publishes them.
type singer struct {
	encoder  *libopus.Encoder
	begin    time.Time
	sequence uint16
	count    int
}

func newSinger(t testing.TB, begin time.Time) *singer {
	encoder, err := libopus.NewEncoder(bitrate)
	if err != nil {
		t.Fatal(err)
	}
	// The number wraps around soon.
	return &singer{encoder: encoder, begin: begin, sequence: 65530}
}

// next is the next packet, which comes 50 ms after it was captured.
func (s *singer) next() Heard {
	captured := s.begin.Add(time.Duration(s.count) * frameTime)
	h := Heard{
		Sequence: s.sequence, Timestamp: uint32(1<<32 - 5000 + s.count*frameSamples),
		Payload: s.encoder.Encode(nil, tone(s.count*frameSamples, 1)),
		Capture: captured, Came: captured.Add(50 * time.Millisecond),
	}
	s.sequence++
	s.count++
	return h
}

// began is when the sounds of tests begin.
var began = time.UnixMilli(1_795_188_600_000)
