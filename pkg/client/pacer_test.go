package client

import (
	"slices"
	"testing"
	"time"

	"github.com/pion/rtp"
)

// packetsOf makes numbered packets of one line.
func packetsOf(l *line, numbers ...uint16) []outgoing {
	var packets []outgoing
	for _, n := range numbers {
		packets = append(packets, outgoing{line: l, header: rtp.Header{SequenceNumber: n}})
	}
	return packets
}

func TestPacer(t *testing.T) {
	start := time.Unix(100, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	var p pacer
	due := func(now time.Time) []uint16 {
		var numbers []uint16
		for _, packet := range p.due(now, nil) {
			numbers = append(numbers, packet.header.SequenceNumber)
		}
		return numbers
	}
	expect := func(ms int, want ...uint16) {
		t.Helper()
		if got := due(at(ms)); !slices.Equal(got, want) {
			t.Errorf("at %d ms: got %v, want %v", ms, got, want)
		}
	}
	a, b := &line{}, &line{}

	p.add(packetsOf(a, 0, 1, 2, 3, 4), at(0), 12*time.Millisecond)
	expect(0, 0)
	expect(2)
	expect(3, 1)
	expect(7, 2)
	expect(20, 3, 4)
	if !p.idle() {
		t.Error("not idle after the last packet")
	}

	p.add(packetsOf(a, 10, 11, 12), at(30), 10*time.Millisecond)
	p.add(packetsOf(b, 20, 21), at(31), 10*time.Millisecond)
	expect(31, 10, 20)
	p.add(packetsOf(a, 13, 14), at(32), 10*time.Millisecond)
	expect(32, 11, 12, 13)
	expect(60, 21, 14)

	p.add(packetsOf(a, 30, 31), at(70), 0)
	expect(70, 30, 31)
}
