package pacing

import (
	"testing"
	"time"
)

const ms = time.Millisecond

func plan(t testing.TB, mode Mode) Plan {
	t.Helper()
	p, err := mode.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// framed is a packet of payload v1 of a track with 30 frames per second.
func framed(frame int64, index, packets int) Packet {
	return Packet{Framed: true, Frame: frame, Index: index, Packets: packets, Timestamp: uint32(frame * 3000)}
}

// foreign is a packet of a track without frame numbers.
func foreign(frame int64) Packet { return Packet{Timestamp: uint32(frame * 3000)} }

func TestSchedule(t *testing.T) {
	type arrival struct {
		at     time.Duration
		packet Packet
		due    time.Duration
	}
	for name, arrivals := range map[string][]arrival{
		"at once": {{0, framed(1, 0, 4), 0}, {0, framed(1, 1, 4), 5 * ms},
			{0, framed(1, 2, 4), 10 * ms}, {0, framed(1, 3, 4), 15 * ms}},
		"as it arrives": {{0, framed(1, 0, 4), 0}, {7 * ms, framed(1, 1, 4), 7 * ms},
			{8 * ms, framed(1, 2, 4), 10 * ms}, {30 * ms, framed(1, 3, 4), 30 * ms}},
		"without the first": {{0, framed(1, 2, 4), 0}, {0, framed(1, 3, 4), 5 * ms},
			{1 * ms, framed(1, 0, 4), 1 * ms}},
		"repair of an earlier frame": {{0, framed(1, 0, 4), 0}, {33 * ms, framed(2, 0, 2), 33 * ms},
			{33 * ms, framed(1, 3, 4), 33 * ms}, {33 * ms, framed(2, 1, 2), 43 * ms}},
		"frames that overlap": {{0, framed(1, 3, 4), 0}, {5 * ms, framed(2, 0, 2), 5 * ms},
			{5 * ms, framed(2, 1, 2), 15 * ms}},
		"foreign: as long as before": {{0, foreign(1), 0}, {0, foreign(1), 0}, {33 * ms, foreign(2), 33 * ms},
			{33 * ms, foreign(2), 43 * ms}, {33 * ms, foreign(2), 53 * ms},
			{34 * ms, foreign(2), 53 * ms}, {66 * ms, foreign(3), 66 * ms}, {66 * ms, foreign(3), 71 * ms},
			{66 * ms, foreign(2), 66 * ms}},
	} {
		s := NewSchedule(plan(t, "spread:20ms"), 90000)
		for i, a := range arrivals {
			if due := s.Due(a.packet, a.at); due != a.due {
				t.Errorf("%s: packet %d is due at %v, expected %v", name, i, due, a.due)
			}
		}
	}
}

func TestInterval(t *testing.T) {
	s := NewSchedule(plan(t, Default), 90000)
	due := func(p Packet, at time.Duration) time.Duration { return s.Due(p, at) }
	due(framed(1, 0, 1), 0)
	if s.Interval() != DefaultInterval {
		t.Errorf("interval is %v before it is known", s.Interval())
	}
	// Frames 2 to 4 are lost, and the timestamp wraps around.
	begin := Packet{Framed: true, Frame: 5, Packets: 4, Timestamp: 1<<32 - 100}
	s = NewSchedule(plan(t, Default), 90000)
	due(begin, 0)
	next := Packet{Framed: true, Frame: 9, Packets: 4, Timestamp: 4*1800 - 100}
	due(next, 100*ms)
	if s.Interval() != 20*ms {
		t.Errorf("interval is %v, expected 20 ms", s.Interval())
	}
	next.Index = 1
	if at := due(next, 100*ms); at != 102*ms {
		t.Errorf("second of four packets is due at %v, expected 102 ms: 0.4 of the interval are 8 ms", at)
	}
	for frame := range uint32(60) {
		due(Packet{Framed: true, Frame: 10 + int64(frame), Packets: 4, Timestamp: next.Timestamp + (frame+1)*3000},
			200*ms)
	}
	if i := s.Interval(); i < 33*ms || i > 34*ms {
		t.Errorf("interval is %v, expected 33 ms", i)
	}
	for _, clock := range []uint32{0, 1, 90000} {
		s := NewSchedule(plan(t, Default), clock)
		for n := range uint32(100) {
			s.Due(Packet{Timestamp: n * n * n << 20}, time.Duration(n))
			if i := s.Interval(); i < minInterval || i > maxInterval {
				t.Fatalf("interval is %v", i)
			}
		}
	}
	s.Reset()
	if at := s.Due(framed(1, 0, 1), time.Second); at != time.Second {
		t.Errorf("after a reset the first packet is due at %v", at)
	}
}
