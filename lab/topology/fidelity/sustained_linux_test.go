package fidelity

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSustainedIsMeasured: the measurements include 400 Mbit/s of packets of 1,200 bytes through a link with a higher
// rate.
func TestSustainedIsMeasured(t *testing.T) {
	found := slices.ContainsFunc(measurements(1), func(m measurement) bool {
		return strings.Contains(m.name, "400 Mbit/s of UDP for 5s through 500 Mbit/s")
	})
	if !found || packetBytes != 1200 {
		t.Errorf("the measurement is missing, with packets of %d bytes", packetBytes)
	}
}

// TestSustainedJudge: missing or late packets, and a rate below the sent rate, miss their targets. Runs of a slow or
// delayed sender are not judged.
func TestSustainedJudge(t *testing.T) {
	s := sustained{delay: 10 * time.Millisecond, mbps: 400, link: 500, lasts: time.Second}
	const interval, lasts = 24_000, 19_200 // ns between packets at 400 Mbit/s, and of each on the link
	for name, test := range map[string]struct {
		change func([]departure, []arrival) ([]departure, []arrival)
		met    []bool // nil if not valid
	}{
		"true": {func(d []departure, a []arrival) ([]departure, []arrival) { return d, a },
			[]bool{true, true, true}},
		"one missing": {func(d []departure, a []arrival) ([]departure, []arrival) { return d, a[1:] }, []bool{false}},
		"late": {func(d []departure, a []arrival) ([]departure, []arrival) {
			for i := range a {
				a[i].at += int64(time.Millisecond)
			}
			return d, a
		}, []bool{true, true, false}},
		"slow": {func(d []departure, a []arrival) ([]departure, []arrival) {
			for i := range a {
				a[i].at += int64(i) * interval / 20
			}
			return d, a
		}, []bool{true, false, false}},
		"slow sender": {func(d []departure, a []arrival) ([]departure, []arrival) {
			for i := range d {
				d[i].before += int64(i) * interval / 20
			}
			return d, a
		}, nil},
		"delayed": {func(d []departure, a []arrival) ([]departure, []arrival) {
			for i := range d[:100] {
				d[i].before -= int64(60 * time.Millisecond)
			}
			return d, a
		}, nil},
	} {
		var departures []departure
		var arrivals []arrival
		for i := range int64(20_000) {
			departures = append(departures, departure{i * interval, i * interval})
			arrivals = append(arrivals, arrival{number: uint64(i), at: i*interval + lasts + int64(s.delay)})
		}
		lines, err := s.judge(test.change(departures, arrivals))
		var invalid invalidError
		if errors.As(err, &invalid) != (test.met == nil) || test.met != nil && err != nil ||
			len(lines) != len(test.met) {
			t.Errorf("%s: %v, %v", name, lines, err)
			continue
		}
		for i, l := range lines {
			if l.Met != test.met[i] {
				t.Errorf("%s: %v, expected met %v", name, l, test.met[i])
			}
		}
	}
}
