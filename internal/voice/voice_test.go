package voice

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/voice/libopus"
)

// began is the capture time of the first sample in tests.
var began = time.UnixMilli(1_795_188_600_000)

// TestFramerFollowsAClock uses a sound card that is too slow by a thousandth, for ten minutes: the times follow
// without gaps, except for about one step per minute.
func TestFramerFollowsAClock(t *testing.T) {
	const frameTime = time.Second / 50
	var r Framer
	samples := make([]float32, libopus.FrameSamples)
	steps, last := 0, began.Add(-frameTime)
	const frames = 30_000
	for i := range frames {
		end := began.Add(time.Duration(i+1)*(frameTime+frameTime/1000) + time.Duration(i*i%15)*time.Millisecond)
		r.Add(samples, end)
		_, begin := r.Frame()
		if begin.Sub(last) != frameTime {
			steps++
		}
		if off := end.Add(-frameTime).Sub(begin); off.Abs() > 3*drift {
			t.Fatalf("frame %d is off by %v", i, off)
		}
		last = begin
		r.Pop()
	}
	if most := int(frames * frameTime / 1000 / drift); steps == 0 || steps > 2*most {
		t.Errorf("%d steps, expected about %d", steps, most)
	}
}

// reads reads samples in pieces until n were read, and returns the number of samples before silence.
func reads(p *Playout, n, piece int) (heard int) {
	buffer := make([]float32, piece)
	for ; n > 0; n -= piece {
		heard += p.Read(buffer)
	}
	return heard
}

// TestPlayout plays packets that arrive in time, late, and faster than they are played.
func TestPlayout(t *testing.T) {
	var p Playout
	packet := make([]float32, libopus.FrameSamples)
	for i := range packet {
		packet[i] = 1
	}
	buffer := []float32{7, 7, 7}
	if heard := p.Read(buffer); heard != 0 || buffer[0] != 0 || buffer[2] != 0 {
		t.Errorf("%d samples, %v before the first packet", heard, buffer)
	}
	p.Write(packet)
	if heard := reads(&p, 480, 480); heard != 0 {
		t.Errorf("%d samples are played from one packet, expected to wait for two", heard)
	}
	p.Write(packet)
	for range 100 {
		if heard := reads(&p, libopus.FrameSamples, 480); heard != libopus.FrameSamples {
			t.Fatalf("%d samples, expected no gap", heard)
		}
		p.Write(packet)
	}
	// Two packets are missing: the next gap needs a longer delay.
	if heard := reads(&p, 4*libopus.FrameSamples, 480); heard != 2*libopus.FrameSamples {
		t.Errorf("%d samples at the end", heard)
	}
	p.Write(packet)
	p.Write(packet)
	if heard := reads(&p, 480, 480); heard != 0 {
		t.Errorf("%d samples after a gap, expected to wait for three packets", heard)
	}
	p.Write(packet)
	if heard := reads(&p, 480, 480); heard != 480 {
		t.Errorf("%d samples, expected to play", heard)
	}
	// After ten seconds without a gap the delay is two packets again. A surplus of ten seconds is dropped.
	for range 8 {
		p.Write(packet)
	}
	for range 2*calm/libopus.FrameSamples + 1 {
		p.Write(packet)
		reads(&p, libopus.FrameSamples, 480)
	}
	if n := len(p.samples); n > 3*libopus.FrameSamples {
		t.Errorf("%d samples wait after twenty seconds without a gap", n)
	}
	for range 100 {
		p.Write(packet)
	}
	p.Write(make([]float32, 2*room))
	if len(p.samples) != room {
		t.Errorf("%d samples wait, expected at most %d", len(p.samples), room)
	}
}

// TestStream decodes packets out of order and conceals a lost one. cmd/volbridge/internal/transcode has more tests of
// streams.
func TestStream(t *testing.T) {
	if !libopus.Available() {
		t.Skipf("skipped: %v", libopus.ErrUnavailable)
	}
	encoder, err := libopus.NewEncoder(64_000)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewStream()
	if err != nil {
		t.Fatal(err)
	}
	samples := 0
	for _, sequence := range []int{0, 2, 1, 3, 5, 6, 6, 4} {
		now := began.Add(time.Duration(sequence) * 20 * time.Millisecond)
		s.Push(Packet{Sequence: uint16(sequence), Timestamp: uint32(sequence * libopus.FrameSamples),
			Payload: encoder.Encode(nil, make([]float32, libopus.FrameSamples)), Capture: now, Arrival: now})
		for sound, ok := s.Next(now); ok; sound, ok = s.Next(now) {
			samples += len(sound.Samples)
		}
	}
	if want := (Counts{Concealed: 1, Late: 2}); samples != 7*libopus.FrameSamples || s.Counts() != want {
		t.Errorf("%d samples, %+v, expected %d and %+v", samples, s.Counts(), 7*libopus.FrameSamples, want)
	}
}
