package transcode

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/libspeex"
	"github.com/volsfu/volsfu/internal/voice"
	"github.com/volsfu/volsfu/internal/voice/libopus"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

const (
	// frameSamples is the number of samples in 20 ms.
	frameSamples = libopus.FrameSamples
	frameTime    = 20 * time.Millisecond
	// pitch is the frequency of the test tone in Hz, loudness its amplitude: 12 dB below the maximum.
	pitch, loudness = 440, 0.25
)

// tone returns frames of the test tone, starting at a sample.
func tone(from, frames int) []float32 {
	samples := make([]float32, frames*frameSamples)
	for i := range samples {
		samples[i] = loudness * float32(math.Sin(2*math.Pi*pitch*float64(from+i)/libopus.Rate))
	}
	return samples
}

// component returns the amplitude of a frequency in samples, by correlation.
func component(samples []float32, hertz float64) float64 {
	var re, im float64
	for i, v := range samples {
		sin, cos := math.Sincos(2 * math.Pi * hertz * float64(i) / libopus.Rate)
		re, im = re+float64(v)*cos, im+float64(v)*sin
	}
	return 2 * math.Hypot(re, im) / float64(len(samples))
}

// sameTone fails if samples, except for the first fifth of a second, are not the test tone: as loud within the given
// decibels, of that frequency, and with hardly any other component.
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
	// Speex adds noise; a garbled tone would have most of its power at other frequencies.
	if share := at / total; share < 0.9 {
		t.Errorf("%.0f %% of the amplitude is the tone's", 100*share)
	}
}

// sameLoudness fails if samples are not as loud as the tone within the given decibels, in the mean over intervals of 20
// ms: concealed samples are out of phase, and so is Speex for a while afterwards.
func sameLoudness(t *testing.T, samples []float32, decibels float64) {
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

// needAudio skips a test in programs without the audio codecs.
func needAudio(t testing.TB) {
	t.Helper()
	if err := AudioAvailable(); err != nil {
		t.Skipf("skipped: %v", err)
	}
}

// voiceSource encodes the tone as frames of VR2Gather.
type voiceSource struct {
	t       testing.TB
	encoder *libspeex.Encoder
	fourCC  codec.FourCC
	number  uint32
}

func newVoiceSource(t testing.TB, fourCC codec.FourCC) *voiceSource {
	encoder, err := libspeex.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	return &voiceSource{t: t, encoder: encoder, fourCC: fourCC}
}

// next returns the next frame of 20 ms, which ends at the given time.
func (w *voiceSource) next(end time.Time) VoiceFrame {
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
	return VoiceFrame{Number: w.number, Codec: w.fourCC, Data: data, End: end, Arrival: end.Add(5 * time.Millisecond)}
}

// opusSink decodes the packets of a transcoder.
type opusSink struct {
	t       testing.TB
	decoder *libopus.Decoder
	samples []float32
	times   []time.Time
}

func newOpusSink(t testing.TB) *opusSink {
	decoder, err := libopus.NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	return &opusSink{t: t, decoder: decoder}
}

func (e *opusSink) receive(s *OpusTranscoder) {
	for p, ok := s.Next(); ok; p, ok = s.Next() {
		var err error
		if e.samples, err = e.decoder.Decode(e.samples, p.Packet); err != nil {
			e.t.Fatal(err)
		}
		e.times = append(e.times, p.Capture)
	}
}

// voiceSink decodes the frames of a transcoder.
type voiceSink struct {
	t       testing.TB
	decoder *libspeex.Decoder
	samples []float32
	ends    []time.Time
}

func newVoiceSink(t testing.TB) *voiceSink {
	decoder, err := libspeex.NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	return &voiceSink{t: t, decoder: decoder}
}

func (e *voiceSink) receive(l *VoiceTranscoder, now time.Time, raw bool) {
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
			// VR2Gather's decoder allocates ten times the bytes of the first packet, so all packets must have the same
			// size.
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

// opusSource encodes the tone as Opus packets, like a client that publishes them.
type opusSource struct {
	encoder  *libopus.Encoder
	begin    time.Time
	sequence uint16
	count    int
}

func newOpusSource(t testing.TB, begin time.Time) *opusSource {
	encoder, err := libopus.NewEncoder(bitrate)
	if err != nil {
		t.Fatal(err)
	}
	// The sequence number wraps around soon.
	return &opusSource{encoder: encoder, begin: begin, sequence: 65530}
}

// next returns the next packet, which arrives 50 ms after its capture.
func (s *opusSource) next() voice.Packet {
	captured := s.begin.Add(time.Duration(s.count) * frameTime)
	h := voice.Packet{
		Sequence: s.sequence, Timestamp: uint32(1<<32 - 5000 + s.count*frameSamples),
		Payload: s.encoder.Encode(nil, tone(s.count*frameSamples, 1)),
		Capture: captured, Arrival: captured.Add(50 * time.Millisecond),
	}
	s.sequence++
	s.count++
	return h
}

// began is the capture time of the first sample in tests.
var began = time.UnixMilli(1_795_188_600_000)
