package transcode

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/libspeex"
	"github.com/volsfu/volsfu/internal/voice"
	"github.com/volsfu/volsfu/internal/voice/libopus"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// TestOpusTranscoderKeepsATone converts VR2Gather's audio to Opus, for several frame sizes.
func TestOpusTranscoderKeepsATone(t *testing.T) {
	needAudio(t)
	for _, fourCC := range []codec.FourCC{vr2gather.CodecVoice, vr2gather.CodecRawVoice} {
		toOpus, err := NewOpusTranscoder()
		if err != nil {
			t.Fatal(err)
		}
		from, sink := newVoiceSource(t, fourCC), newOpusSink(t)
		for i := range 50 {
			// VR2Gather's times are the ends of frames, late by up to the duration of an image.
			jitter := time.Duration(i%3*7) * time.Millisecond
			if err := toOpus.Push(from.next(began.Add(time.Duration(i+1)*frameTime + jitter))); err != nil {
				t.Fatal(err)
			}
			sink.receive(toOpus)
		}
		sameTone(t, sink.samples, 1)
		if len(sink.times) != 50 || toOpus.Concealed() != 0 {
			t.Errorf("%v: %d packets, %d frames made up", fourCC, len(sink.times), toOpus.Concealed())
		}
		for i, at := range sink.times {
			if want := sink.times[0].Add(time.Duration(i) * frameTime); !at.Equal(want) ||
				at.Sub(began.Add(time.Duration(i)*frameTime)).Abs() > frameTime {
				t.Errorf("%v: packet %d was captured after %v", fourCC, i, at.Sub(began))
			}
		}
	}
	toOpus, err := NewOpusTranscoder()
	if err != nil {
		t.Fatal(err)
	}
	// Frames of 320 samples, 6.7 ms, which VR2Gather uses if another rate is configured.
	encoder, sink := newVoiceSource(t, vr2gather.CodecVoice).encoder, newOpusSink(t)
	samples := tone(0, 50)
	for i := 0; i+libspeex.FrameSamples <= len(samples); i += libspeex.FrameSamples {
		end := began.Add(libopus.Duration(i + libspeex.FrameSamples))
		err := toOpus.Push(VoiceFrame{Number: uint32(i / libspeex.FrameSamples), Codec: vr2gather.CodecVoice,
			Data: encoder.Encode(nil, samples[i:][:libspeex.FrameSamples]), End: end, Arrival: end})
		if err != nil {
			t.Fatal(err)
		}
		sink.receive(toOpus)
	}
	sameTone(t, sink.samples, 1)
	if len(sink.times) != 50 || sink.times[49].Sub(began.Add(49*frameTime)).Abs() > time.Microsecond {
		t.Errorf("%d packets, the last one after %v", len(sink.times), sink.times[len(sink.times)-1].Sub(began))
	}
}

// TestSoundThereAndBack converts VR2Gather's audio to Opus and back. The added delay is known.
func TestSoundThereAndBack(t *testing.T) {
	needAudio(t)
	toOpus, err := NewOpusTranscoder()
	if err != nil {
		t.Fatal(err)
	}
	toVoice, err := NewVoiceTranscoder()
	if err != nil {
		t.Fatal(err)
	}
	from, sink := newVoiceSource(t, vr2gather.CodecVoice), newVoiceSink(t)
	for i := range 50 {
		now := began.Add(time.Duration(i+1) * frameTime)
		if err := toOpus.Push(from.next(now)); err != nil {
			t.Fatal(err)
		}
		for p, ok := toOpus.Next(); ok; p, ok = toOpus.Next() {
			toVoice.Push(voice.Packet{Sequence: uint16(i), Timestamp: uint32(i * frameSamples),
				Payload: bytes.Clone(p.Packet), Capture: p.Capture, Arrival: now})
		}
		sink.receive(toVoice, now, false)
	}
	sameTone(t, sink.samples, 1.5)
	if up, down := toOpus.Lookahead(), toVoice.Lookahead(); up <= 0 || down <= 0 || up+down > frameTime {
		t.Errorf("codecs look ahead by %v and %v, expected less than a frame", up, down)
	}
	if first, last := sink.ends[0], sink.ends[len(sink.ends)-1]; len(sink.ends) != 50 ||
		!first.Equal(began.Add(frameTime)) || !last.Equal(began.Add(50*frameTime)) {
		t.Errorf("%d frames, from %v to %v", len(sink.ends), first.Sub(began), last.Sub(began))
	}
}

// TestOpusTranscoderConceals loses a tenth of the connector's frames, and then many.
func TestOpusTranscoderConceals(t *testing.T) {
	needAudio(t)
	for _, fourCC := range []codec.FourCC{vr2gather.CodecVoice, vr2gather.CodecRawVoice} {
		toOpus, err := NewOpusTranscoder()
		if err != nil {
			t.Fatal(err)
		}
		from, sink := newVoiceSource(t, fourCC), newOpusSink(t)
		push := func(frame int) {
			if err := toOpus.Push(from.next(began.Add(time.Duration(frame+1) * frameTime))); err != nil {
				t.Fatal(err)
			}
			sink.receive(toOpus)
		}
		for i := range 101 {
			if i%10 == 5 {
				from.next(began)
				continue
			}
			push(i)
		}
		if len(sink.times) != 101 || toOpus.Concealed() != 10 {
			t.Errorf("%v: %d packets, %d frames made up", fourCC, len(sink.times), toOpus.Concealed())
		}
		// Silence reduces a tone's amplitude by a tenth, which is 0.9 dB. Speex, which predicts a tone from the
		// concealed samples, needs a while to regain the loudness.
		sameLoudness(t, sink.samples, 4)
		for range 2 * maxLost {
			from.next(began)
		}
		push(101 + 2*maxLost)
		if n := len(sink.times); n != 102 || !sink.times[101].Equal(began.Add((101+2*maxLost)*frameTime)) ||
			toOpus.Concealed() != 10 {
			t.Errorf("%v: %d packets, %d frames made up after a pause", fourCC, n, toOpus.Concealed())
		}
	}
}

// TestMalformedSound pushes malformed frames to a transcoder.
func TestMalformedSound(t *testing.T) {
	needAudio(t)
	toOpus, err := NewOpusTranscoder()
	if err != nil {
		t.Fatal(err)
	}
	for name, voice := range map[string]VoiceFrame{
		"no Speex":     {Codec: vr2gather.CodecVoice, Data: bytes.Repeat([]byte{0x48}, 40)},
		"too long":     {Codec: vr2gather.CodecVoice, Data: make([]byte, 1<<20)},
		"half samples": {Codec: vr2gather.CodecRawVoice, Data: make([]byte, 7)},
		"many samples": {Codec: vr2gather.CodecRawVoice, Data: make([]byte, 4*maxSamples+4)},
	} {
		if err := toOpus.Push(voice); !errors.Is(err, ErrAudio) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// NaN becomes silence, and samples that are too loud are clipped.
	odd := make([]byte, 0, 4*frameSamples)
	for i := range frameSamples {
		odd = binary.LittleEndian.AppendUint32(odd,
			math.Float32bits([]float32{float32(math.NaN()), float32(math.Inf(1)), -1e30}[i%3]))
	}
	if err := toOpus.Push(VoiceFrame{Codec: vr2gather.CodecRawVoice, Data: odd}); err != nil {
		t.Fatal(err)
	}
	samples, _ := toOpus.buffer.Frame()
	if samples[0] != 0 || samples[1] != 1 || samples[2] != -1 {
		t.Errorf("samples are %v", samples[:3])
	}
	if IsVoice(vr2gather.CodecOctree) || !IsVoice(vr2gather.CodecVoice) || !IsVoice(vr2gather.CodecRawVoice) {
		t.Error("points are no sound, and sound is")
	}
}

// TestSoundAllocations checks that transcoding audio does not allocate.
func TestSoundAllocations(t *testing.T) {
	needAudio(t)
	toOpus, err := NewOpusTranscoder()
	if err != nil {
		t.Fatal(err)
	}
	toVoice, err := NewVoiceTranscoder()
	if err != nil {
		t.Fatal(err)
	}
	voices, packets := newVoiceSource(t, vr2gather.CodecVoice), newOpusSource(t, began)
	voice, packet := voices.next(began.Add(frameTime)), packets.next()
	once := func() {
		if err := toOpus.Push(voice); err != nil {
			t.Fatal(err)
		}
		for _, ok := toOpus.Next(); ok; _, ok = toOpus.Next() {
			continue
		}
		toVoice.Push(packet)
		for _, ok := toVoice.Next(packet.Arrival, false); ok; _, ok = toVoice.Next(packet.Arrival, false) {
			continue
		}
		// Some frames are lost.
		lost := 1 + voice.Number%10/9
		voice.Number += lost
		voice.End = voice.End.Add(time.Duration(lost) * frameTime)
		voice.Arrival = voice.Arrival.Add(time.Duration(lost) * frameTime)
		packet.Sequence += uint16(lost)
		packet.Timestamp += lost * frameSamples
		packet.Capture = packet.Capture.Add(time.Duration(lost) * frameTime)
		packet.Arrival = packet.Arrival.Add(time.Duration(lost) * frameTime)
	}
	for range 50 {
		once()
	}
	if n := testing.AllocsPerRun(200, once); n != 0 {
		t.Errorf("%g allocations, expected none", n)
	}
	if toOpus.Concealed() == 0 || toVoice.Counts().Concealed == 0 {
		t.Error("nothing was made up")
	}
}

// FuzzOpusTranscoder receives arbitrary data from a connector.
func FuzzOpusTranscoder(f *testing.F) {
	needAudio(f)
	from := newVoiceSource(f, vr2gather.CodecVoice)
	f.Add(uint32(1), true, from.next(began).Data, int64(20))
	f.Add(uint32(7), true, append(from.next(began).Data, from.next(began).Data...), int64(-2_000))
	f.Add(uint32(3), false, make([]byte, 3840), int64(1<<62))
	toOpus, err := NewOpusTranscoder()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, number uint32, compressed bool, data []byte, stamp int64) {
		fourCC := vr2gather.CodecRawVoice
		if compressed {
			fourCC = vr2gather.CodecVoice
		}
		if err := toOpus.Push(VoiceFrame{Number: number, Codec: fourCC, Data: data,
			End: time.UnixMilli(stamp)}); err != nil && !errors.Is(err, ErrAudio) {
			t.Error(err)
		}
		for p, ok := toOpus.Next(); ok; p, ok = toOpus.Next() {
			if len(p.Packet) == 0 {
				t.Error("empty packet")
			}
		}
		if toOpus.buffer.Full() {
			t.Error("a complete frame waits")
		}
	})
}
