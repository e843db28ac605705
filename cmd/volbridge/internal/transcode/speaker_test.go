package transcode

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/libspeex"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// TestSpeakerKeepsATone converts VR2Gather's audio to Opus, for several frame sizes.
func TestSpeakerKeepsATone(t *testing.T) {
	sounding(t)
	for _, fourCC := range []codec.FourCC{vr2gather.CodecVoice, vr2gather.CodecRawVoice} {
		speaker, err := NewSpeaker()
		if err != nil {
			t.Fatal(err)
		}
		from, ear := newTeller(t, fourCC), newOpusEar(t)
		for i := range 50 {
			// VR2Gather's times are the ends of frames, late by up to the duration of an image.
			jitter := time.Duration(i%3*7) * time.Millisecond
			if err := speaker.Push(from.next(began.Add(time.Duration(i+1)*frameTime + jitter))); err != nil {
				t.Fatal(err)
			}
			ear.hear(speaker)
		}
		sameTone(t, ear.samples, 1)
		if len(ear.times) != 50 || speaker.Concealed() != 0 {
			t.Errorf("%v: %d packets, %d frames made up", fourCC, len(ear.times), speaker.Concealed())
		}
		for i, at := range ear.times {
			if want := ear.times[0].Add(time.Duration(i) * frameTime); !at.Equal(want) ||
				at.Sub(began.Add(time.Duration(i)*frameTime)).Abs() > frameTime {
				t.Errorf("%v: packet %d was captured after %v", fourCC, i, at.Sub(began))
			}
		}
	}
	speaker, err := NewSpeaker()
	if err != nil {
		t.Fatal(err)
	}
	// Frames of 320 samples, 6.7 ms, which VR2Gather uses if another rate is configured.
	encoder, ear := newTeller(t, vr2gather.CodecVoice).encoder, newOpusEar(t)
	samples := tone(0, 50)
	for i := 0; i+libspeex.FrameSamples <= len(samples); i += libspeex.FrameSamples {
		end := began.Add(lasting(i + libspeex.FrameSamples))
		err := speaker.Push(Said{Number: uint32(i / libspeex.FrameSamples), Codec: vr2gather.CodecVoice,
			Data: encoder.Encode(nil, samples[i:][:libspeex.FrameSamples]), End: end, Came: end})
		if err != nil {
			t.Fatal(err)
		}
		ear.hear(speaker)
	}
	sameTone(t, ear.samples, 1)
	if len(ear.times) != 50 || ear.times[49].Sub(began.Add(49*frameTime)).Abs() > time.Microsecond {
		t.Errorf("%d packets, the last one after %v", len(ear.times), ear.times[len(ear.times)-1].Sub(began))
	}
}

// TestSoundThereAndBack converts VR2Gather's audio to Opus and back. The added delay is known.
func TestSoundThereAndBack(t *testing.T) {
	sounding(t)
	speaker, err := NewSpeaker()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := NewListener()
	if err != nil {
		t.Fatal(err)
	}
	from, ear := newTeller(t, vr2gather.CodecVoice), newSpeexEar(t)
	for i := range 50 {
		now := began.Add(time.Duration(i+1) * frameTime)
		if err := speaker.Push(from.next(now)); err != nil {
			t.Fatal(err)
		}
		for p, ok := speaker.Next(); ok; p, ok = speaker.Next() {
			listener.Push(Heard{Sequence: uint16(i), Timestamp: uint32(i * frameSamples),
				Payload: bytes.Clone(p.Packet), Capture: p.Capture, Came: now})
		}
		ear.hear(listener, now, false)
	}
	sameTone(t, ear.samples, 1.5)
	if up, down := speaker.Lookahead(), listener.Lookahead(); up <= 0 || down <= 0 || up+down > frameTime {
		t.Errorf("codecs look ahead by %v and %v, expected less than a frame", up, down)
	}
	if first, last := ear.ends[0], ear.ends[len(ear.ends)-1]; len(ear.ends) != 50 ||
		!first.Equal(began.Add(frameTime)) || !last.Equal(began.Add(50*frameTime)) {
		t.Errorf("%d frames, from %v to %v", len(ear.ends), first.Sub(began), last.Sub(began))
	}
}

// TestSpeakerConceals loses a tenth of the connector's frames, and then many.
func TestSpeakerConceals(t *testing.T) {
	sounding(t)
	for _, fourCC := range []codec.FourCC{vr2gather.CodecVoice, vr2gather.CodecRawVoice} {
		speaker, err := NewSpeaker()
		if err != nil {
			t.Fatal(err)
		}
		from, ear := newTeller(t, fourCC), newOpusEar(t)
		push := func(frame int) {
			if err := speaker.Push(from.next(began.Add(time.Duration(frame+1) * frameTime))); err != nil {
				t.Fatal(err)
			}
			ear.hear(speaker)
		}
		for i := range 101 {
			if i%10 == 5 {
				from.next(began)
				continue
			}
			push(i)
		}
		if len(ear.times) != 101 || speaker.Concealed() != 10 {
			t.Errorf("%v: %d packets, %d frames made up", fourCC, len(ear.times), speaker.Concealed())
		}
		// Silence reduces a tone's amplitude by a tenth, which is 0.9 dB. Speex, which predicts a tone from the
		// concealed samples, needs a while to regain the loudness.
		asLoud(t, ear.samples, 4)
		for range 2 * maxLost {
			from.next(began)
		}
		push(101 + 2*maxLost)
		if n := len(ear.times); n != 102 || !ear.times[101].Equal(began.Add((101+2*maxLost)*frameTime)) ||
			speaker.Concealed() != 10 {
			t.Errorf("%v: %d packets, %d frames made up after a pause", fourCC, n, speaker.Concealed())
		}
	}
}

// TestSpeakerFollowsAClock uses a sound card that is too slow by a thousandth, for ten minutes: the times follow
// without gaps, except for about one step per minute.
func TestSpeakerFollowsAClock(t *testing.T) {
	var r reel
	samples := make([]float32, frameSamples)
	steps, last := 0, began.Add(-frameTime)
	const frames = 30_000
	for i := range frames {
		end := began.Add(time.Duration(i+1)*(frameTime+frameTime/1000) + time.Duration(i*i%15)*time.Millisecond)
		r.add(samples, end)
		_, begin := r.frame()
		if begin.Sub(last) != frameTime {
			steps++
		}
		if off := end.Add(-frameTime).Sub(begin); off.Abs() > 3*drift {
			t.Fatalf("frame %d is off by %v", i, off)
		}
		last = begin
		r.wind()
	}
	if most := int(frames * frameTime / 1000 / drift); steps == 0 || steps > 2*most {
		t.Errorf("%d steps, expected about %d", steps, most)
	}
}

// TestMalformedSound pushes malformed frames to a speaker.
func TestMalformedSound(t *testing.T) {
	sounding(t)
	speaker, err := NewSpeaker()
	if err != nil {
		t.Fatal(err)
	}
	for name, said := range map[string]Said{
		"no Speex":     {Codec: vr2gather.CodecVoice, Data: bytes.Repeat([]byte{0x48}, 40)},
		"too long":     {Codec: vr2gather.CodecVoice, Data: make([]byte, 1<<20)},
		"half samples": {Codec: vr2gather.CodecRawVoice, Data: make([]byte, 7)},
		"many samples": {Codec: vr2gather.CodecRawVoice, Data: make([]byte, 4*maxSound+4)},
	} {
		if err := speaker.Push(said); !errors.Is(err, ErrSound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// NaN becomes silence, and samples that are too loud are clipped.
	odd := make([]byte, 0, 4*frameSamples)
	for i := range frameSamples {
		odd = binary.LittleEndian.AppendUint32(odd,
			math.Float32bits([]float32{float32(math.NaN()), float32(math.Inf(1)), -1e30}[i%3]))
	}
	if err := speaker.Push(Said{Codec: vr2gather.CodecRawVoice, Data: odd}); err != nil {
		t.Fatal(err)
	}
	samples, _ := speaker.reel.frame()
	if samples[0] != 0 || samples[1] != 1 || samples[2] != -1 {
		t.Errorf("samples are %v", samples[:3])
	}
	if Speaks(vr2gather.CodecOctree) || !Speaks(vr2gather.CodecVoice) || !Speaks(vr2gather.CodecRawVoice) {
		t.Error("points are no sound, and sound is")
	}
}

// TestSoundAllocations checks that transcoding audio does not allocate.
func TestSoundAllocations(t *testing.T) {
	sounding(t)
	speaker, err := NewSpeaker()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := NewListener()
	if err != nil {
		t.Fatal(err)
	}
	told, sung := newTeller(t, vr2gather.CodecVoice), newSinger(t, began)
	said, heard := told.next(began.Add(frameTime)), sung.next()
	once := func() {
		if err := speaker.Push(said); err != nil {
			t.Fatal(err)
		}
		for _, ok := speaker.Next(); ok; _, ok = speaker.Next() {
			continue
		}
		listener.Push(heard)
		for _, ok := listener.Next(heard.Came, false); ok; _, ok = listener.Next(heard.Came, false) {
			continue
		}
		// Some frames are lost.
		lost := 1 + said.Number%10/9
		said.Number += lost
		said.End, said.Came = said.End.Add(time.Duration(lost)*frameTime), said.Came.Add(time.Duration(lost)*frameTime)
		heard.Sequence += uint16(lost)
		heard.Timestamp += lost * frameSamples
		heard.Capture = heard.Capture.Add(time.Duration(lost) * frameTime)
		heard.Came = heard.Came.Add(time.Duration(lost) * frameTime)
	}
	for range 50 {
		once()
	}
	if n := testing.AllocsPerRun(200, once); n != 0 {
		t.Errorf("%g allocations, expected none", n)
	}
	if speaker.Concealed() == 0 || listener.Counts().Concealed == 0 {
		t.Error("nothing was made up")
	}
}

// FuzzSpeaker receives arbitrary data from a connector.
func FuzzSpeaker(f *testing.F) {
	sounding(f)
	from := newTeller(f, vr2gather.CodecVoice)
	f.Add(uint32(1), true, from.next(began).Data, int64(20))
	f.Add(uint32(7), true, append(from.next(began).Data, from.next(began).Data...), int64(-2_000))
	f.Add(uint32(3), false, make([]byte, 3840), int64(1<<62))
	speaker, err := NewSpeaker()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, number uint32, compressed bool, data []byte, stamp int64) {
		fourCC := vr2gather.CodecRawVoice
		if compressed {
			fourCC = vr2gather.CodecVoice
		}
		if err := speaker.Push(Said{Number: number, Codec: fourCC, Data: data,
			End: time.UnixMilli(stamp)}); err != nil && !errors.Is(err, ErrSound) {
			t.Error(err)
		}
		for p, ok := speaker.Next(); ok; p, ok = speaker.Next() {
			if len(p.Packet) == 0 {
				t.Error("empty packet")
			}
		}
		if len(speaker.reel.samples) >= frameSamples {
			t.Errorf("%d samples wait", len(speaker.reel.samples))
		}
	})
}
