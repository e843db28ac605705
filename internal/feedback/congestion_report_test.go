package feedback

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
)

// congestionExample is a report of two streams, after the figure in RFC 8888 section 3.1.
const congestionExample = `
	8bcd 0008  00000001
	00000457  ffff 0003
	8000 0000 e400 0000
	000008ae  0064 0000
	00018000`

func bytesOf(t testing.TB, text string) []byte {
	t.Helper()
	data, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestCongestionReport(t *testing.T) {
	want := CongestionReport{
		Sender: 1,
		Streams: []StreamReport{
			{SSRC: 1111, Begin: 65535, Packets: []PacketArrival{{Received: true}, {},
				{Received: true, ECN: ecn.CE, Offset: 1024}}},
			{SSRC: 2222, Begin: 100, Packets: []PacketArrival{}},
		},
		Timestamp: 98_304,
	}
	packet := bytesOf(t, congestionExample)
	if got, err := want.Append(nil); err != nil || !bytes.Equal(got, packet) {
		t.Fatalf("wrote %x, %v, expected %x", got, err, packet)
	}
	var got CongestionReport
	for range 2 {
		if err := got.Unmarshal(packet); err != nil {
			t.Fatal(err)
		}
		if got.arrivals = nil; !reflect.DeepEqual(got, want) {
			t.Fatalf("read %+v, expected %+v", got, want)
		}
	}
	// Padding is not a stream.
	padded := append(slices.Clone(packet), 0, 0, 0, 4)
	padded[0] |= 0x20
	padded[3]++
	if err := got.Unmarshal(padded); err != nil || len(got.Streams) != 2 {
		t.Errorf("with padding: %+v, %v", got, err)
	}
}

func TestMalformedCongestionReports(t *testing.T) {
	for name, text := range map[string]string{
		"empty":                 ``,
		"another format":        `8fcd0002 00000001 00000000`,
		"another type":          `8bce0002 00000001 00000000`,
		"no timestamp":          `8bcd0001 00000001`,
		"longer than it is":     `8bcd0003 00000001 00000000`,
		"half a stream":         `8bcd0003 00000001 00000457 00000000`,
		"more packets than are": `8bcd0004 00000001 00000457 00000001 00000000`,
		"an odd packet":         `8bcd0005 00000001 00000457 00000003 80008000 00000000`,
		"padding of nothing":    `abcd0002 00000001 00000000`,
		"padding of too much":   `abcd0002 00000001 00000004`,
	} {
		var r CongestionReport
		if err := r.Unmarshal(bytesOf(t, text)); !errors.Is(err, ErrCongestionReport) {
			t.Errorf("%s: got %v, expected %v", name, err, ErrCongestionReport)
		}
	}
	long := CongestionReport{Streams: []StreamReport{{Packets: make([]PacketArrival, maxStreamPackets+1)}}}
	if got, err := long.Append([]byte{1}); !errors.Is(err, ErrCongestionReport) || len(got) != 1 {
		t.Errorf("too many packets: %d bytes, %v", len(got), err)
	}
	long.Streams = slices.Repeat([]StreamReport{{Packets: make([]PacketArrival, maxStreamPackets)}}, 8)
	if got, err := long.Append([]byte{1}); !errors.Is(err, ErrCongestionReport) || len(got) != 1 {
		t.Errorf("too many words: %d bytes, %v", len(got), err)
	}
}

func TestArrivalOffset(t *testing.T) {
	for before, want := range map[time.Duration]uint16{
		0: 0, time.Second / 2: 512, time.Second: 1024, -1: OffsetUnknown, time.Second * 8189 / 1024: 8189,
		8 * time.Second: OffsetOverRange, time.Hour * 9999: OffsetOverRange,
	} {
		if got := ArrivalOffset(before); got != want {
			t.Errorf("ArrivalOffset(%v) = %d, expected %d", before, got, want)
		}
	}
}

// FuzzCongestionReport parses arbitrary packets: every parsed report can be encoded, with the same result when parsed
// again.
func FuzzCongestionReport(f *testing.F) {
	f.Add(bytesOf(f, congestionExample))
	f.Add(bytesOf(f, `8bcd0002 00000001 00000000`))
	f.Add(bytesOf(f, `abcd0006 00000001 00000457 00000001 ffff0000 00000000 00000004`))
	f.Fuzz(func(t *testing.T, packet []byte) {
		h := NewCongestionHistory()
		for i := range 100 {
			h.Sent(1111, uint16(65_500+i), 1000, Media, ecn.Codepoint(i%3), start)
		}
		results := h.Feedback(packet, after(time.Second), nil)
		for _, result := range results {
			number := result.Sequence - firstCycle
			if result.SentECN != ecn.Codepoint(number%3) || result.SentECN == ecn.NotECT && result.ECN == ecn.CE {
				t.Fatalf("packet %d left with %d: %+v", number, number%3, result)
			}
		}
		var r, again CongestionReport
		if r.Unmarshal(packet) != nil {
			if len(results) > 0 {
				t.Fatalf("%d results of a malformed packet", len(results))
			}
			return
		}
		written, err := r.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Unmarshal(written); err != nil {
			t.Fatal(err)
		}
		if r.arrivals, again.arrivals = nil, nil; !reflect.DeepEqual(r, again) {
			t.Fatalf("wrote %+v, read %+v", r, again)
		}
		if !slices.IsSortedFunc(results, func(a, b PacketResult) int { return int(a.Sequence - b.Sequence) }) ||
			len(results) > 200 {
			t.Fatalf("%d results in disorder: %v", len(results), results)
		}
	})
}

// TestReportWithAnOldTime: a packet that arrives after the caller has read the clock does not seem to arrive early.
func TestReportWithAnOldTime(t *testing.T) {
	r := NewCongestionRecorder(DefaultConfig().Transport, 1)
	h := NewCongestionHistory()
	const interval = 5 * time.Millisecond
	var delays []time.Duration
	for n := range uint16(200) {
		sent := time.Duration(n) * interval
		h.Sent(7, n, 1200, Media, ecn.ECT1, after(sent))
		r.Received(7, n, 1200, ecn.ECT1, after(sent+10*time.Millisecond))
		// The clock was read 6 ms before the packet arrived.
		now := after(sent + 4*time.Millisecond)
		for report := r.AppendReports(nil, now); len(report) > 0; report = r.AppendReports(nil, now) {
			for _, result := range h.Feedback(report, after(sent+20*time.Millisecond), nil) {
				delays = append(delays, result.Arrived-result.Sent.Sub(start))
			}
		}
	}
	if len(delays) < 100 {
		t.Fatalf("%d packets are reported, expected 100 at least", len(delays))
	}
	// Arrival times have steps of 1 ms.
	if least, most := slices.Min(delays), slices.Max(delays); most-least > time.Millisecond {
		t.Errorf("the packets seem to take %v to %v, expected the same time", least, most)
	}
}
