package feedback

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/pion/rtcp"
)

// feedbackOf returns a report with the arrival ticks of the numbers from base on, -1 for lost ones.
func feedbackOf(base uint16, reference uint32, deltas ...int) []byte {
	var e transportEncoder
	e.reset(1 << 16)
	lost := int64(0)
	for _, delta := range deltas {
		if delta < 0 {
			lost++
			continue
		}
		e.add(lost, int16(delta))
		lost = 0
	}
	return e.append(nil, transportReport{sender: 1, media: 2, base: base, count: uint16(len(deltas)),
		reference: reference})
}

// TestTransportHistoryWindow checks that unreported packets are kept for a minute, but never more than half of the
// 16-bit range.
func TestTransportHistoryWindow(t *testing.T) {
	h := NewTransportHistory(65000)
	for i := range 40_000 {
		if number := h.Sent(1000, Media, after(time.Duration(i)*time.Millisecond)); uint16(number) != 65000+uint16(i) {
			t.Fatalf("packet %d has number %d", i, number)
		}
	}
	if len(h.sent) != maxWindow || h.InFlight() != maxWindow*1000 || h.Stats().Unreported != 40_000-maxWindow {
		t.Errorf("window %d, in flight %d, %+v", len(h.sent), h.InFlight(), h.Stats())
	}
	h = NewTransportHistory(0)
	for i := range 1000 {
		h.Sent(1000, Audio, after(time.Duration(i)*time.Second))
	}
	if h.InFlight() != 61_000 || h.Stats().Unreported != 1000-61 || len(h.sent) != minSent {
		t.Errorf("in flight %d, window %d, %+v", h.InFlight(), len(h.sent), h.Stats())
	}
	// After two hours times of 32 bits have wrapped around.
	results := h.Feedback(feedbackOf(990, 0, 0, 0, 0), after(2*time.Hour), nil)
	if len(results) != 0 || h.InFlight() != 0 {
		t.Errorf("%+v, in flight %d", results, h.InFlight())
	}
}

// TestTransportHistoryResult checks the fields of a result.
func TestTransportHistoryResult(t *testing.T) {
	h := NewTransportHistory(0)
	h.Sent(100, Audio, after(0))
	h.Sent(70_000, Retransmission, after(5*time.Millisecond))
	h.Sent(300, Parity, after(6*time.Millisecond))
	results := h.Feedback(feedbackOf(0, 10, 4, -1, 400), after(30*time.Millisecond), nil)
	late := h.Feedback(feedbackOf(1, 10, 8), after(60*time.Millisecond), nil)
	for i, expected := range []PacketResult{
		{Sequence: 65536, Size: 100, Kind: Audio, Sent: after(0), Received: true, Arrived: 641 * time.Millisecond},
		{Sequence: 65537, Size: 65535, Kind: Retransmission, Sent: after(5 * time.Millisecond)},
		{Sequence: 65538, Size: 300, Kind: Parity, Sent: after(6 * time.Millisecond), Received: true,
			Arrived: 741 * time.Millisecond},
		{Sequence: 65537, Size: 65535, Kind: Retransmission, Sent: after(5 * time.Millisecond), Received: true,
			Late: true, Arrived: 642 * time.Millisecond},
	} {
		if got := append(results, late...)[i]; got != expected {
			t.Errorf("result %d: %+v, expected %+v", i, got, expected)
		}
	}
}

// TestRemoteClock checks that arrival times continue over wraps of the reference time, with any time between two
// reports, and over jumps of the remote clock.
func TestRemoteClock(t *testing.T) {
	const wrap = referenceTick << referenceBits
	var clock remoteClock
	var stats TransportHistoryStats
	begin := wrap - 10*referenceTick
	reference := func(at time.Duration) uint32 { return uint32((begin+at)/referenceTick) & (1<<referenceBits - 1) }
	for _, at := range []time.Duration{0, time.Second, 990 * time.Millisecond, 10 * time.Second, 5 * 24 * time.Hour,
		40 * 24 * time.Hour} {
		// The report arrives up to 100 ms later.
		got := clock.arrived(reference(at), at+at%(100*time.Millisecond), &stats)
		if expected := (begin + at).Truncate(referenceTick); got != expected || stats.ClockJumps != 0 {
			t.Fatalf("after %v: %v, expected %v, %d jumps", at, got, expected, stats.ClockJumps)
		}
	}
	before := clock.extended
	// The clock stopped for an hour, and continues.
	if got := clock.arrived(clock.reference, clock.at+time.Hour, &stats); stats.ClockJumps != 1 ||
		(got-before-time.Hour).Abs() > referenceTick {
		t.Errorf("%v after a jump, before %v, %d jumps", got, before, stats.ClockJumps)
	}
	if got := clock.arrived(clock.reference+10, clock.at+10*referenceTick, &stats); stats.ClockJumps != 1 ||
		got != clock.extended {
		t.Errorf("%v, %d jumps", got, stats.ClockJumps)
	}
}

// TestTransportHistoryHostile passes wrong and malformed reports. They only affect packets in flight, and their cost is
// bounded by their size.
func TestTransportHistoryHostile(t *testing.T) {
	header := func(base, count uint16, rest ...byte) []byte {
		packet := []byte{0x8f, 205, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1, 0}
		binary.BigEndian.PutUint16(packet[12:], base)
		binary.BigEndian.PutUint16(packet[14:], count)
		packet = append(packet, rest...)
		binary.BigEndian.PutUint16(packet[2:], uint16(len(packet)/4-1))
		return packet
	}
	padded := header(0, 1, 0x20, 1, 4, 0)
	padded[0] |= 0x20
	tooLong := header(0, 1, 0x20, 1, 4, 0)
	tooLong[3]++
	for name, test := range map[string]struct {
		packet    []byte
		malformed uint64
		results   int
	}{
		"one packet":                    {header(0, 1, 0x20, 1, 4, 0), 0, 1},
		"empty":                         {nil, 1, 0},
		"another type":                  {append([]byte{0x8f, 206}, header(0, 1, 0x20, 1, 4, 0)[2:]...), 1, 0},
		"length over the end":           {tooLong, 1, 0},
		"padding of nothing":            {padded, 1, 0},
		"no chunks":                     {header(0, 5), 1, 0},
		"too few statuses":              {header(0, 5, 0x20, 3, 0x20, 0, 0, 0, 0x40, 0), 1, 0},
		"no deltas":                     {header(0, 100, 0x20, 100, 0, 0), 1, 0},
		"large deltas, half of them":    {header(0, 4, 0x40, 4, 0, 1, 0, 1, 0, 1), 1, 0},
		"reserved symbol":               {header(0, 1, 0x60, 1, 0, 0), 1, 0},
		"reserved symbol in a vector":   {header(0, 7, 0xc0, 3, 0, 0), 1, 0},
		"reserved symbol beyond count":  {header(0, 1, 0xd0, 3, 4, 0), 0, 1},
		"count of nothing":              {header(0, 0), 0, 0},
		"never sent":                    {header(1000, 1, 0x20, 1, 4, 0), 0, 0},
		"half never sent":               {header(90, 20, append([]byte{0x20, 20}, make([]byte, 22)...)...), 0, 10},
		"all numbers lost":              {header(0, 65535, bytes.Repeat([]byte{0x1f, 0xff}, 10)...), 0, 100},
		"more than chunks say of lost":  {header(0, 65535, 0x1f, 0xff, 0, 0), 1, 0},
		"runs of nothing before a true": {header(0, 1, 0, 0, 0x20, 0, 0x20, 1, 4, 0), 0, 1},
	} {
		h := NewTransportHistory(0)
		for range 100 {
			h.Sent(1200, Media, start)
		}
		results := h.Feedback(test.packet, after(time.Millisecond), nil)
		if stats := h.Stats(); stats.Malformed != test.malformed || len(results) != test.results {
			t.Errorf("%s: %d results, %+v", name, len(results), stats)
		}
		if again := h.Feedback(test.packet, after(time.Millisecond), nil); len(again) != 0 {
			t.Errorf("%s: the same report again gives %+v", name, again)
		}
	}
}

// TestTransportHistoryAllocations checks that neither sending nor feedback allocates, with losses that keep a second of
// packets.
func TestTransportHistoryAllocations(t *testing.T) {
	h := NewTransportHistory(0)
	deltas := make([]int, 250)
	for i := range deltas {
		if deltas[i] = 0; i%25 == 24 {
			deltas[i] = -1
		}
	}
	deltas[249] = 0
	report := feedbackOf(0, 0, deltas...)
	results := make([]PacketResult, 0, len(deltas))
	now := start
	step := func() {
		binary.BigEndian.PutUint16(report[12:], uint16(h.next))
		binary.BigEndian.PutUint32(report[16:], uint32(now.Sub(start)/referenceTick)<<8)
		for range deltas {
			now = now.Add(100 * time.Microsecond)
			h.Sent(1200, Media, now)
		}
		results = h.Feedback(report, now, results[:0])
	}
	for range 100 {
		step()
	}
	if allocations := testing.AllocsPerRun(200, step); allocations != 0 || len(results) != len(deltas) {
		t.Errorf("%.1f allocations per report, %d results", allocations, len(results))
	}
	// The last second has 10,000 packets.
	if len(h.sent) != 1<<14 || h.InFlight() != 0 {
		t.Errorf("window %d, in flight %d", len(h.sent), h.InFlight())
	}
}

// FuzzTransportHistory passes arbitrary reports to a history. No packet has two final results, and the history agrees
// with the RTCP library about every report.
func FuzzTransportHistory(f *testing.F) {
	f.Add(feedbackOf(0, 5, 1, 2, -1, 300, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), uint8(10))
	f.Add(append(feedbackOf(65530, 0xffffff, 1, -1, -1, -1, -1, -1, 2), feedbackOf(65532, 0, 255)...), uint8(200))
	f.Add([]byte{0x8f, 205, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0x9f, 0xff, 0xff, 0}, uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, first uint8) {
		h := NewTransportHistory(65400 + uint16(first))
		for i := range 500 {
			h.Sent(1200, Media, after(time.Duration(i)*time.Millisecond))
		}
		verdicts := map[int64][]PacketResult{}
		for i := 0; len(data) >= 4; i++ {
			size := min(4*(int(binary.BigEndian.Uint16(data[2:]))+1), len(data))
			packet := data[:size]
			data = data[size:]
			received := h.Stats().Received + h.Stats().Unmatched
			results := h.Feedback(packet, after(500*time.Millisecond+time.Duration(i)*20*time.Millisecond), nil)
			for _, result := range results {
				before := verdicts[result.Sequence]
				if len(before) > 1 || len(before) == 1 && (before[0].Received || !result.Late || !result.Received) ||
					len(before) == 0 && result.Late {
					t.Fatalf("%+v after %+v", result, before)
				}
				verdicts[result.Sequence] = append(before, result)
			}
			if _, err := parseTransportFeedback(packet); err == nil {
				compareWithLibrary(t, packet, h.Stats().Received+h.Stats().Unmatched-received)
			}
		}
		if h.InFlight() < 0 || h.InFlight() > 500*1200 {
			t.Fatalf("%d bytes in flight", h.InFlight())
		}
	})
}

// compareWithLibrary compares the number of received packets in a report with the RTCP library, which counts vectors to
// their end. The library needs a byte after the chunks, and cannot count to the last of 65,535.
func compareWithLibrary(t *testing.T, packet []byte, received uint64) {
	t.Helper()
	statuses, _ := parseTransportFeedback(packet)
	var decoded rtcp.TransportLayerCC
	if len(statuses.deltas) == 0 || statuses.count > 60_000 || decoded.Unmarshal(packet) != nil {
		return
	}
	count := uint64(0)
	for _, status := range statusesOf(t, &decoded) {
		if status.received {
			count++
		}
	}
	if count != received {
		t.Fatalf("%x: %d arrived, the library reads %d", packet, received, count)
	}
}
