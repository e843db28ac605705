package feedback

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/test/race"
)

// congestionRig sends two streams alternately to a receiver that reports by RFC 8888.
type congestionRig struct {
	t       *testing.T
	h       *CongestionHistory
	now     time.Duration
	next    [2]uint16
	report  CongestionReport
	results []PacketResult
}

func newCongestionRig(t *testing.T) *congestionRig {
	return &congestionRig{t: t, h: NewCongestionHistory(), next: [2]uint16{65_534, 10}}
}

// send sends one packet of each stream with ECT(1), a millisecond apart, and returns their numbers in the order of
// sending.
func (r *congestionRig) send() (places [2]int64) {
	for i := range r.next {
		r.now += time.Millisecond
		places[i] = r.h.Sent(uint32(i+1), r.next[i], 1000+i, Media, ecn.ECT1, after(r.now))
		r.next[i]++
	}
	return places
}

// tell passes a report of both streams, made at the given time by the receiver's clock in seconds.
func (r *congestionRig) tell(made float64, streams ...StreamReport) []PacketResult {
	r.t.Helper()
	r.report.Streams, r.report.Timestamp = streams, uint32(uint64(made*tickRate))
	packet, err := r.report.Append(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.now += 10 * time.Millisecond
	r.results = r.h.Feedback(packet, after(r.now), r.results[:0])
	return r.results
}

// TestCongestionHistory covers losses, late packets, ECN bits and arrival times of two streams, whose results are in
// the order of sending.
func TestCongestionHistory(t *testing.T) {
	r := newCongestionRig(t)
	first := r.send()
	second := r.send()
	third := r.send()
	at := func(offset uint16, codepoint ecn.Codepoint) PacketArrival {
		return PacketArrival{Received: true, Offset: offset, ECN: codepoint}
	}
	got := r.tell(65_000,
		StreamReport{SSRC: 2, Begin: 10, Packets: []PacketArrival{at(512, ecn.ECT1), at(256, ecn.CE)}},
		StreamReport{SSRC: 3, Begin: 0, Packets: []PacketArrival{at(0, 0)}},
		StreamReport{SSRC: 1, Begin: 65_533, Packets: []PacketArrival{{}, at(1024, ecn.ECT1), {}}})
	base := 65_000 * time.Second
	sent := func(i int) time.Time { return after(time.Duration(i) * time.Millisecond) }
	want := []PacketResult{
		{Sequence: first[0], Size: 1000, Sent: sent(1), Received: true, Arrived: base - time.Second, ECN: ecn.ECT1,
			SentECN: ecn.ECT1},
		{Sequence: first[1], Size: 1001, Sent: sent(2), Received: true, Arrived: base - time.Second/2, ECN: ecn.ECT1,
			SentECN: ecn.ECT1},
		{Sequence: second[0], Size: 1000, Sent: sent(3), SentECN: ecn.ECT1},
		{Sequence: second[1], Size: 1001, Sent: sent(4), Received: true, Arrived: base - time.Second/4,
			ECN: ecn.CE, SentECN: ecn.ECT1},
	}
	expectResults(t, got, want)
	if in := r.h.InFlight(); in != 2001 {
		t.Errorf("%d bytes in flight, expected those of the two packets that nothing was said of", in)
	}
	// Overlapping reports yield only new results; a lost packet arrived late; a packet that arrived after the report's
	// time has that time. The clock wraps around.
	got = r.tell(66_000, StreamReport{SSRC: 1, Begin: 65_534,
		Packets: []PacketArrival{at(0, ecn.ECT1), at(1024, ecn.ECT0), at(OffsetUnknown, ecn.NotECT)}})
	base = 66_000 * time.Second
	want = []PacketResult{
		{Sequence: second[0], Size: 1000, Sent: sent(3), Received: true, Late: true, Arrived: base - time.Second,
			ECN: ecn.ECT0, SentECN: ecn.ECT1},
		{Sequence: third[0], Size: 1000, Sent: sent(5), Received: true, Arrived: base, SentECN: ecn.ECT1},
	}
	expectResults(t, got, want)
	s := r.h.Stats()
	if s.Received != 5 || s.Lost != 1 || s.Late != 1 || s.Reports != 2 || s.Malformed != 0 || s.Unmatched != 2 {
		t.Errorf("%+v", s)
	}
	if got := r.h.Feedback([]byte{0x8b, transportType, 0, 9}, after(r.now), nil); len(got) != 0 ||
		r.h.Stats().Malformed != 1 {
		t.Errorf("got %+v of a malformed packet", got)
	}
}

func expectResults(t *testing.T, got, want []PacketResult) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %+v, expected %+v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("result %d is %+v, expected %+v", i, got[i], want[i])
		}
	}
}

// TestCongestionHistoryGrows keeps packets of streams of unequal rates until they are reported, across wrap-arounds:
// each has one result, and none has that of another.
func TestCongestionHistoryGrows(t *testing.T) {
	race.SkipSequential(t)
	random := rand.New(rand.NewPCG(9, 9))
	h := NewCongestionHistory()
	type key struct {
		ssrc     uint32
		sequence uint16
	}
	next := []uint16{0, 40_000, 65_000}
	places := map[key]int64{}
	now, results := time.Duration(0), 0
	for range 100 {
		var begin [3]uint16
		copy(begin[:], next)
		for range 3000 {
			stream := min(random.IntN(10), 2)
			now += 50 * time.Microsecond
			places[key{uint32(stream), next[stream]}] = h.Sent(uint32(stream), next[stream], 100, Media, ecn.NotECT,
				after(now))
			next[stream]++
		}
		report := CongestionReport{Timestamp: uint32(now.Seconds() * tickRate)}
		for stream := range next {
			s := StreamReport{SSRC: uint32(stream), Begin: begin[stream]}
			for range next[stream] - begin[stream] {
				s.Packets = append(s.Packets, PacketArrival{Received: true})
			}
			report.Streams = append(report.Streams, s)
		}
		packet, err := report.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		got := h.Feedback(packet, after(now), nil)
		results += len(got)
		known := map[int64]bool{}
		for stream := range next {
			for sequence := begin[stream]; sequence != next[stream]; sequence++ {
				known[places[key{uint32(stream), sequence}]] = true
			}
		}
		for _, result := range got {
			if !known[result.Sequence] || !result.Received {
				t.Fatalf("unexpected result %+v", result)
			}
		}
	}
	if s := h.Stats(); results != 300_000 || s.Unmatched != 0 || s.Unreported != 0 {
		t.Errorf("%d results of 300000 packets; %+v", results, s)
	}
}

// sizes returns the sum of the tables' sizes, and compares it with the history's own count.
func (h *CongestionHistory) sizes(t *testing.T) (entries int) {
	t.Helper()
	for _, s := range h.streams {
		entries += len(s.packets)
	}
	if grown := entries - minStream*len(h.streams); grown != h.grown || grown > maxGrown {
		t.Fatalf("tables have grown by %d entries, %d are counted, expected %d at most", grown, h.grown, maxGrown)
	}
	return entries
}

// TestCongestionHistoryIsBounded has a receiver that never reports. It uses one stream after the other, at a rate that
// fills the window each time, and a little of all others meanwhile, or numbers that are far apart: the tables stay
// within their bound, and tables of unused streams are released. A report at the end yields results for the last
// packets of its stream.
func TestCongestionHistoryIsBounded(t *testing.T) {
	race.SkipSequential(t)
	const streams, each = 40, 2 * maxWindow
	for name, test := range map[string]struct {
		trickle bool
		step    uint16
	}{"one after the other": {false, 1}, "with a trickle on all others": {true, 1}, "numbers far apart": {true, 4096}} {
		t.Run(name, func(t *testing.T) {
			h := NewCongestionHistory()
			var next [streams]uint16
			now := time.Duration(0)
			send := func(stream int, step uint16) {
				h.Sent(uint32(stream), next[stream], 1200, Media, ecn.NotECT, after(now))
				next[stream] += step
				now += 100 * time.Microsecond
			}
			most := 0
			for stream := range streams {
				for n := range each {
					send(stream, test.step)
					if other := n % streams; test.trickle && n < 2*streams && other < stream {
						send(other, test.step)
					}
					if n%1024 == 0 {
						most = max(most, h.sizes(t))
					}
				}
			}
			t.Logf("%d streams of %d have tables of %d entries together, %d at most", len(h.streams), streams,
				h.sizes(t), most)
			if got := 16 * (most - minStream*streams); got > 2_100_000 {
				t.Errorf("the tables took %d bytes beyond 1 kB for each stream, expected 2.1 MB at most", got)
			}
			if !test.trickle && len(h.streams) > 8 {
				t.Errorf("%d streams are known, expected those of the window and few others", len(h.streams))
			}
			const last = streams - 1
			report := CongestionReport{
				Timestamp: uint32(now.Seconds() * tickRate),
				Streams: []StreamReport{{SSRC: last, Begin: next[last] - test.step,
					Packets: []PacketArrival{{Received: true}}}},
			}
			packet, err := report.Append(nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := h.Feedback(packet, after(now), nil); len(got) != 1 || !got[0].Received ||
				got[0].Sequence != h.history.next-1 {
				t.Errorf("got %+v of the packet sent last", got)
			}
		})
	}
}

// TestSweepsCountWhatTheyTakeBack sweeps streams whose newest packet does not have the highest number, or whose numbers
// are sparse: tables do not grow in a sweep, and the count matches the released entries.
func TestSweepsCountWhatTheyTakeBack(t *testing.T) {
	h := NewCongestionHistory()
	now := time.Duration(0)
	send := func(ssrc uint32, sequences ...uint16) {
		for _, sequence := range sequences {
			now += 10 * time.Microsecond
			h.Sent(ssrc, sequence, 1200, Media, ecn.NotECT, after(now))
		}
	}
	for sequence := range uint16(100) {
		if sequence != 50 {
			send(1, sequence)
		}
	}
	send(1, 50)
	send(2, 65_500, 20, 100)
	for range 3 {
		h.sweep(nil)
		h.sizes(t)
	}
	for ssrc, want := range map[uint32]int{1: 128, 2: minStream} {
		if size := len(h.streams[ssrc].packets); size != want {
			t.Errorf("the table of stream %d has %d entries, expected %d", ssrc, size, want)
		}
	}
}

// TestSweptStreamsKeepTheirPackets: packets that wait for a result get it, although the tables were made smaller
// meanwhile, also for streams that were removed and used again.
func TestSweptStreamsKeepTheirPackets(t *testing.T) {
	h := NewCongestionHistory()
	now := time.Duration(0)
	send := func(ssrc uint32, from uint16, count int) (places []int64) {
		for n := range count {
			now += 10 * time.Microsecond
			places = append(places, h.Sent(ssrc, from+uint16(n), 1200, Media, ecn.NotECT, after(now)))
		}
		return places
	}
	send(1, 0, 20_000)
	send(2, 0, maxWindow)
	kept := append(send(1, 20_000, 100), send(3, 65_500, 200)...)
	h.sweep(nil)
	if size := len(h.streams[1].packets); size != 128 {
		t.Errorf("the table of 100 packets has %d entries, expected 128", size)
	}
	send(2, maxWindow, maxWindow-len(kept)-100)
	h.sweep(nil)
	again := send(4, 0, 100)
	report := CongestionReport{Timestamp: uint32(now.Seconds() * tickRate)}
	for _, s := range []StreamReport{{SSRC: 1, Begin: 20_000}, {SSRC: 3, Begin: 65_500}, {SSRC: 4}} {
		s.Packets = make([]PacketArrival, map[uint32]int{1: 100, 3: 200, 4: 100}[s.SSRC])
		for i := range s.Packets {
			s.Packets[i].Received = true
		}
		report.Streams = append(report.Streams, s)
	}
	packet, err := report.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	got := h.Feedback(packet, after(now), nil)
	want := append(kept, again...)
	if len(got) != len(want) {
		t.Fatalf("%d results, expected %d", len(got), len(want))
	}
	for i, result := range got {
		if result.Sequence != want[i] || !result.Received {
			t.Fatalf("result %d is %+v, expected packet %d", i, result, want[i])
		}
	}
	send(2, 0, 2*maxWindow)
	h.sweep(nil)
	if len(h.streams) != 1 {
		t.Errorf("%d streams are known, expected the one that fills the window", len(h.streams))
	}
	if places := send(1, 7, 1); h.streams[1] == nil || len(h.streams[1].packets) != minStream ||
		places[0] != h.history.next-1 {
		t.Error("a stream that reappears does not start again")
	}
}

func BenchmarkCongestionHistory(b *testing.B) {
	h := NewCongestionHistory()
	report := CongestionReport{Streams: []StreamReport{{SSRC: 1, Packets: make([]PacketArrival, 100)}}}
	for i := range report.Streams[0].Packets {
		report.Streams[0].Packets[i].Received = true
	}
	var packet []byte
	var results []PacketResult
	now, sequence := time.Duration(0), uint16(0)
	b.ReportAllocs()
	for b.Loop() {
		report.Streams[0].Begin = sequence
		for range 100 {
			h.Sent(1, sequence, 1200, Media, ecn.NotECT, after(now))
			sequence++
		}
		now += 10 * time.Millisecond
		report.Timestamp = uint32(now.Seconds() * tickRate)
		packet, _ = report.Append(packet[:0])
		if results = h.Feedback(packet, after(now), results[:0]); len(results) != 100 {
			b.Fatal("results are missing")
		}
	}
}
