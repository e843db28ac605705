package transcode

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/libspeex"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// TestListenerKeepsATone converts Opus to VR2Gather's audio.
func TestListenerKeepsATone(t *testing.T) {
	sounding(t)
	for _, raw := range []bool{false, true} {
		listener, err := NewListener()
		if err != nil {
			t.Fatal(err)
		}
		from, ear := newSinger(t, began), newSpeexEar(t)
		for range 50 {
			p := from.next()
			listener.Push(p)
			ear.hear(listener, p.Came, raw)
		}
		sameTone(t, ear.samples, 1)
		if len(ear.ends) != 50 || listener.Counts() != (ListenerCounts{}) {
			t.Errorf("raw %v: %d frames, %+v", raw, len(ear.ends), listener.Counts())
		}
		for i, end := range ear.ends {
			if want := began.Add(time.Duration(i+1) * frameTime); !end.Equal(want) {
				t.Errorf("raw %v: frame %d ends after %v, expected %v", raw, i, end.Sub(began), want.Sub(began))
			}
		}
	}
}

// TestListenerConceals loses a tenth of the packets.
func TestListenerConceals(t *testing.T) {
	sounding(t)
	listener, err := NewListener()
	if err != nil {
		t.Fatal(err)
	}
	from, ear := newSinger(t, began), newSpeexEar(t)
	for i := range 101 {
		p := from.next()
		if i%10 == 5 {
			continue
		}
		listener.Push(p)
		ear.hear(listener, p.Came, false)
	}
	sameTone(t, ear.samples, 1.5)
	if len(ear.ends) != 101 || listener.Counts() != (ListenerCounts{Concealed: 10}) {
		t.Errorf("%d frames, %+v", len(ear.ends), listener.Counts())
	}
	for i, end := range ear.ends {
		if want := began.Add(time.Duration(i+1) * frameTime); !end.Equal(want) {
			t.Errorf("frame %d ends after %v, expected %v", i, end.Sub(began), want.Sub(began))
		}
	}
}

// TestListenerWaits delivers packets out of order, twice, and too late.
func TestListenerWaits(t *testing.T) {
	sounding(t)
	listener, err := NewListener()
	if err != nil {
		t.Fatal(err)
	}
	from, ear := newSinger(t, began), newSpeexEar(t)
	var p [8]Heard
	for i := range p {
		p[i] = from.next()
	}
	step := func(now time.Time, frames int, packets ...Heard) {
		t.Helper()
		for _, h := range packets {
			h.Came = now
			listener.Push(h)
		}
		if ear.hear(listener, now, false); len(ear.ends) != frames {
			t.Fatalf("after %v: %d frames, expected %d", now.Sub(began), len(ear.ends), frames)
		}
	}
	now := began
	step(now, 1, p[0], p[0])
	step(now, 1, p[2])
	if due, ok := listener.Due(); !ok || !due.Equal(now.Add(orderWait)) {
		t.Fatalf("due after %v", due.Sub(now))
	}
	step(now.Add(orderWait-1), 1)
	step(now.Add(orderWait-1), 3, p[1])
	// The listener waits for a missing packet until the time limit.
	step(now.Add(100*time.Millisecond), 3, p[4])
	step(now.Add(100*time.Millisecond+orderWait), 5)
	step(now.Add(200*time.Millisecond), 5, p[3])
	// Two packets after a missing one are enough.
	step(now.Add(200*time.Millisecond), 8, p[6], p[7])
	if _, ok := listener.Due(); ok || listener.Counts() != (ListenerCounts{Concealed: 2, Late: 2}) {
		t.Errorf("something waits: %v; %+v", ok, listener.Counts())
	}
	// The next packet is not Opus. Its audio is concealed with the packet after it.
	step(now.Add(300*time.Millisecond), 8, Heard{Sequence: from.sequence, Payload: []byte{0xff, 0xff}})
	from.next()
	step(now.Add(300*time.Millisecond), 10, from.next())
	if got := listener.Counts(); got != (ListenerCounts{Concealed: 3, Late: 2, Malformed: 1}) {
		t.Errorf("%+v", got)
	}
}

// TestListenerPauses uses a client that sends nothing during silence, for a short and a long time, and a client that
// restarts.
func TestListenerPauses(t *testing.T) {
	sounding(t)
	listener, err := NewListener()
	if err != nil {
		t.Fatal(err)
	}
	from, ear := newSinger(t, began), newSpeexEar(t)
	send := func(frames int) {
		t.Helper()
		p := from.next()
		listener.Push(p)
		if ear.hear(listener, p.Came, true); len(ear.ends) != frames {
			t.Fatalf("%d frames, expected %d", len(ear.ends), frames)
		}
	}
	send(1)
	from.count += 3 // a pause without missing sequence numbers
	send(5)
	for _, v := range ear.samples[frameSamples:][:3*frameSamples] {
		if v != 0 {
			t.Fatal("expected silence")
		}
	}
	from.count += 500
	send(6)
	if end := ear.ends[5].Sub(began); end != 506*frameTime {
		t.Errorf("the frame after a pause ends after %v", end)
	}
	from.sequence += 20_000
	from.count += 9
	send(7)
	if listener.Counts() != (ListenerCounts{}) {
		t.Errorf("%+v", listener.Counts())
	}
}

// FuzzListener receives arbitrary data from a client.
func FuzzListener(f *testing.F) {
	sounding(f)
	from := newSinger(f, began)
	for range 3 {
		p := from.next()
		f.Add(p.Sequence, p.Timestamp, p.Payload, int64(20))
	}
	listener, err := NewListener()
	if err != nil {
		f.Fatal(err)
	}
	now := began
	f.Fuzz(func(t *testing.T, sequence uint16, timestamp uint32, payload []byte, stamp int64) {
		now = now.Add(5 * time.Millisecond)
		listener.Push(Heard{Sequence: sequence, Timestamp: timestamp, Payload: payload, Capture: time.UnixMilli(stamp),
			Came: now})
		for made, ok := listener.Next(now, false); ok; made, ok = listener.Next(now, false) {
			var header vr2gather.FrameHeader
			if data, err := header.Parse(made.Frame); err != nil || len(data) != 3*libspeex.FrameBytes {
				t.Errorf("frame of %d bytes: %v", len(data), err)
			}
		}
		if len(listener.waiting) > orderPackets || len(listener.reel.samples) >= frameSamples {
			t.Errorf("%d packets and %d samples wait", len(listener.waiting), len(listener.reel.samples))
		}
	})
}
