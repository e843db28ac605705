package transcode

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/libspeex"
	"github.com/volsfu/volsfu/internal/voice"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// TestVoiceTranscoderKeepsATone converts Opus to VR2Gather's audio.
func TestVoiceTranscoderKeepsATone(t *testing.T) {
	needAudio(t)
	for _, raw := range []bool{false, true} {
		toVoice, err := NewVoiceTranscoder()
		if err != nil {
			t.Fatal(err)
		}
		from, sink := newOpusSource(t, began), newVoiceSink(t)
		for range 50 {
			p := from.next()
			toVoice.Push(p)
			sink.receive(toVoice, p.Arrival, raw)
		}
		sameTone(t, sink.samples, 1)
		if len(sink.ends) != 50 || toVoice.Counts() != (voice.Counts{}) {
			t.Errorf("raw %v: %d frames, %+v", raw, len(sink.ends), toVoice.Counts())
		}
		for i, end := range sink.ends {
			if want := began.Add(time.Duration(i+1) * frameTime); !end.Equal(want) {
				t.Errorf("raw %v: frame %d ends after %v, expected %v", raw, i, end.Sub(began), want.Sub(began))
			}
		}
	}
}

// TestVoiceTranscoderConceals loses a tenth of the packets.
func TestVoiceTranscoderConceals(t *testing.T) {
	needAudio(t)
	toVoice, err := NewVoiceTranscoder()
	if err != nil {
		t.Fatal(err)
	}
	from, sink := newOpusSource(t, began), newVoiceSink(t)
	for i := range 101 {
		p := from.next()
		if i%10 == 5 {
			continue
		}
		toVoice.Push(p)
		sink.receive(toVoice, p.Arrival, false)
	}
	sameTone(t, sink.samples, 1.5)
	if len(sink.ends) != 101 || toVoice.Counts() != (voice.Counts{Concealed: 10}) {
		t.Errorf("%d frames, %+v", len(sink.ends), toVoice.Counts())
	}
	for i, end := range sink.ends {
		if want := began.Add(time.Duration(i+1) * frameTime); !end.Equal(want) {
			t.Errorf("frame %d ends after %v, expected %v", i, end.Sub(began), want.Sub(began))
		}
	}
}

// orderWait is the time for which a stream waits for a missing packet.
const orderWait = 40 * time.Millisecond

// TestVoiceTranscoderWaits delivers packets out of order, twice, and too late.
func TestVoiceTranscoderWaits(t *testing.T) {
	needAudio(t)
	toVoice, err := NewVoiceTranscoder()
	if err != nil {
		t.Fatal(err)
	}
	from, sink := newOpusSource(t, began), newVoiceSink(t)
	var p [8]voice.Packet
	for i := range p {
		p[i] = from.next()
	}
	step := func(now time.Time, frames int, packets ...voice.Packet) {
		t.Helper()
		for _, h := range packets {
			h.Arrival = now
			toVoice.Push(h)
		}
		if sink.receive(toVoice, now, false); len(sink.ends) != frames {
			t.Fatalf("after %v: %d frames, expected %d", now.Sub(began), len(sink.ends), frames)
		}
	}
	now := began
	step(now, 1, p[0], p[0])
	step(now, 1, p[2])
	if due, ok := toVoice.Due(); !ok || !due.Equal(now.Add(orderWait)) {
		t.Fatalf("due after %v", due.Sub(now))
	}
	step(now.Add(orderWait-1), 1)
	step(now.Add(orderWait-1), 3, p[1])
	// The transcoder waits for a missing packet until the time limit.
	step(now.Add(100*time.Millisecond), 3, p[4])
	step(now.Add(100*time.Millisecond+orderWait), 5)
	step(now.Add(200*time.Millisecond), 5, p[3])
	// Two packets after a missing one are enough.
	step(now.Add(200*time.Millisecond), 8, p[6], p[7])
	if _, ok := toVoice.Due(); ok || toVoice.Counts() != (voice.Counts{Concealed: 2, Late: 2}) {
		t.Errorf("something waits: %v; %+v", ok, toVoice.Counts())
	}
	// The next packet is not Opus. Its audio is concealed with the packet after it.
	step(now.Add(300*time.Millisecond), 8, voice.Packet{Sequence: from.sequence, Payload: []byte{0xff, 0xff}})
	from.next()
	step(now.Add(300*time.Millisecond), 10, from.next())
	if got := toVoice.Counts(); got != (voice.Counts{Concealed: 3, Late: 2, Malformed: 1}) {
		t.Errorf("%+v", got)
	}
}

// TestVoiceTranscoderPauses uses a client that sends nothing during silence, for a short and a long time, and a client
// that restarts.
func TestVoiceTranscoderPauses(t *testing.T) {
	needAudio(t)
	toVoice, err := NewVoiceTranscoder()
	if err != nil {
		t.Fatal(err)
	}
	from, sink := newOpusSource(t, began), newVoiceSink(t)
	send := func(frames int) {
		t.Helper()
		p := from.next()
		toVoice.Push(p)
		if sink.receive(toVoice, p.Arrival, true); len(sink.ends) != frames {
			t.Fatalf("%d frames, expected %d", len(sink.ends), frames)
		}
	}
	send(1)
	from.count += 3 // a pause without missing sequence numbers
	send(5)
	for _, v := range sink.samples[frameSamples:][:3*frameSamples] {
		if v != 0 {
			t.Fatal("expected silence")
		}
	}
	from.count += 500
	send(6)
	if end := sink.ends[5].Sub(began); end != 506*frameTime {
		t.Errorf("the frame after a pause ends after %v", end)
	}
	from.sequence += 20_000
	from.count += 9
	send(7)
	if toVoice.Counts() != (voice.Counts{}) {
		t.Errorf("%+v", toVoice.Counts())
	}
}

// FuzzVoiceTranscoder receives arbitrary data from a client.
func FuzzVoiceTranscoder(f *testing.F) {
	needAudio(f)
	from := newOpusSource(f, began)
	for range 3 {
		p := from.next()
		f.Add(p.Sequence, p.Timestamp, p.Payload, int64(20))
	}
	toVoice, err := NewVoiceTranscoder()
	if err != nil {
		f.Fatal(err)
	}
	now := began
	f.Fuzz(func(t *testing.T, sequence uint16, timestamp uint32, payload []byte, stamp int64) {
		now = now.Add(5 * time.Millisecond)
		toVoice.Push(voice.Packet{Sequence: sequence, Timestamp: timestamp, Payload: payload,
			Capture: time.UnixMilli(stamp), Arrival: now})
		for made, ok := toVoice.Next(now, false); ok; made, ok = toVoice.Next(now, false) {
			var header vr2gather.FrameHeader
			if data, err := header.Parse(made.Frame); err != nil || len(data) != 3*libspeex.FrameBytes {
				t.Errorf("frame of %d bytes: %v", len(data), err)
			}
		}
		if toVoice.Waiting() > 2 || toVoice.buffer.Full() {
			t.Errorf("%d packets wait", toVoice.Waiting())
		}
	})
}
