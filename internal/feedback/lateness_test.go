package feedback

import (
	"testing"
	"time"
)

// TestLate has frames of two packets that a queue delays for a while, on clocks an hour apart, while timestamps wrap
// around.
func TestLate(t *testing.T) {
	const ms = time.Millisecond
	r := NewLateness(90000)
	timestamp := uint32(1<<32 - 90*500)
	sequence, now := int64(1), start.Add(time.Hour)
	frames := func(count int, queue time.Duration) {
		for range count {
			for i := range 2 {
				r.Received(sequence, timestamp, now.Add(queue+time.Duration(i)*10*ms))
				sequence++
			}
			now, timestamp = now.Add(33*ms), timestamp+33*90
		}
	}
	expect := func(what string, least, most time.Duration) {
		t.Helper()
		if late := r.Longest(); late < least || late > most {
			t.Errorf("%s: late by %v, expected %v to %v", what, late, least, most)
		}
	}
	frames(1, 0)
	expect("one frame", 10*ms, 10*ms)
	frames(60, 0)
	expect("an empty path", 10*ms, 10*ms)
	frames(3, 120*ms)
	expect("a queue", 130*ms, 130*ms)
	frames(5, 0)
	expect("just emptied", 130*ms, 130*ms)
	frames(30, 0)
	expect("a second later", 10*ms, 10*ms)
	// A path that has become longer is known as such when the earlier times have expired.
	frames(10, 80*ms)
	expect("a longer path", 90*ms, 90*ms)
	frames(400, 80*ms)
	expect("a longer path, known", 10*ms, 10*ms)
	timestamp += 90 * 10_000
	frames(2, 80*ms)
	expect("timestamps that jump", 10*ms, 10*ms)
	// A packet out of order does not change the result.
	r.Received(sequence-2, timestamp-90*33, now.Add(200*ms))
	expect("reordered", 10*ms, 10*ms)
}

// TestRepairTerms: the deadline follows the duration of repairs.
func TestRepairTerms(t *testing.T) {
	const ms = time.Millisecond
	nack := DefaultConfig().NACK
	for _, test := range []struct{ rtt, late, trip, deadline time.Duration }{
		{20 * ms, 0, 20 * ms, 150 * ms},
		{20 * ms, 50 * ms, 20 * ms, 150 * ms},
		{60 * ms, 20 * ms, 60 * ms, 250 * ms},
		{20 * ms, 150 * ms, 170 * ms, 400 * ms},
		{20 * ms, time.Hour, 270 * ms, 500 * ms},
	} {
		if trip, deadline := nack.Repair(test.rtt, test.late); trip != test.trip || deadline != test.deadline {
			t.Errorf("round trip %v, late by %v: repairs take %v until %v, expected %v until %v", test.rtt, test.late,
				trip, deadline, test.trip, test.deadline)
		}
	}
}
