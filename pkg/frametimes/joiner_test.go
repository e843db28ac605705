package frametimes

import (
	"testing"
	"time"
)

func key(frame uint32) Key { return Key{Track: sample().Track, Frame: frame} }

// part returns the stamps of one host in the sample.
func part(h Host) *Record {
	whole := sample()
	r := &Record{Track: whole.Track, Frame: whole.Frame}
	r.Clocks[h] = whole.Clocks[h]
	for s := range Stamp(Stamps) {
		if s.Host() == h {
			r.Times[s] = whole.Times[s]
		}
	}
	return r
}

// TestJoiner adds the parts of the hosts in any order. A record is returned when its time has
// elapsed.
func TestJoiner(t *testing.T) {
	now := began
	j := NewJoiner(time.Second, 100)
	j.Add(key(1), part(Server), now)
	now = now.Add(300 * time.Millisecond)
	received := part(Receiver)
	received.Receiver, received.Bytes = sample().Receiver, sample().Bytes
	j.Claim(key(1), received, now)
	// A record without a receiver is dropped.
	j.Add(key(2), part(Sender), now)
	j.Add(key(1), part(Sender), now)
	j.Add(key(1), part(Relay), now)
	j.Note(key(1), func(r *Record) { r.Times[Shown] = 12345 })
	j.Note(key(99), func(*Record) { t.Error("a frame that was never heard of is noted") })
	if got := j.Take(began.Add(999*time.Millisecond), nil); len(got) != 0 {
		t.Fatalf("%d records before their time", len(got))
	}
	got := j.Take(began.Add(2*time.Second), nil)
	want := sample()
	want.Times[Shown] = 12345
	if len(got) != 1 || got[0] != want {
		t.Fatalf("got %+v, expected %+v", got, want)
	}
	if again := j.Drain(nil); len(again) != 0 || len(j.pending) != 0 {
		t.Errorf("%d records are left, %d wait", len(again), len(j.pending))
	}
	// A later part starts a new record, which is drained at the end.
	j.Claim(key(3), received, now)
	if got := j.Drain(nil); len(got) != 1 {
		t.Errorf("%d records at the end, expected 1", len(got))
	}
}

// TestJoinerIsBounded expects that the oldest records are dropped and that memory does not grow
// with time.
func TestJoinerIsBounded(t *testing.T) {
	j := NewJoiner(time.Hour, 10)
	for n := range uint32(1000) {
		j.Claim(key(n), part(Receiver), began.Add(time.Duration(n)*time.Millisecond))
	}
	if got := j.Dropped(); got != 990 || len(j.pending) != 10 || len(j.queue) > 30 {
		t.Errorf("%d dropped, %d wait in a queue of %d", got, len(j.pending), len(j.queue))
	}
	if got := j.Drain(nil); len(got) != 10 {
		t.Errorf("%d records, expected the newest 10", len(got))
	}
	now := began
	quick := NewJoiner(time.Second, 1<<20)
	taken := 0
	for n := range uint32(10_000) {
		now = now.Add(10 * time.Millisecond)
		quick.Claim(key(n), part(Receiver), now)
		taken += len(quick.Take(now, nil))
	}
	if taken != 10_000-100 || len(quick.queue) > 300 {
		t.Errorf("%d taken, a queue of %d", taken, len(quick.queue))
	}
}
