package feedback

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/test/race"
)

// crossing is a packet in transit to a receiver that reports by RFC 8888.
type crossing struct {
	ssrc     uint32
	sequence uint16
	place    int64
	sent     time.Duration
	arrives  time.Duration // 0 for never
	left     ecn.Codepoint
	ecn      ecn.Codepoint // on arrival
}

// TestCongestionPath checks that the sender learns the exact fate of the packets of five streams of unequal rates, on
// paths that lose, mark and reorder them: one final result for every packet before the last that arrived of its stream,
// with its arrival time to a millisecond.
func TestCongestionPath(t *testing.T) {
	race.SkipSequential(t)
	for _, path := range []struct {
		name    string
		packets int
		spacing time.Duration
		loss    float64
		jitter  time.Duration
	}{
		{name: "clean", packets: 60_000, spacing: 100 * time.Microsecond},
		{name: "1 Gbit/s", packets: 100_000, spacing: 10 * time.Microsecond, loss: 0.01},
		{name: "half lost", packets: 40_000, spacing: 100 * time.Microsecond, loss: 0.5},
		{name: "jitter", packets: 40_000, spacing: 100 * time.Microsecond, loss: 0.02, jitter: 5 * time.Millisecond},
		{name: "slow", packets: 2000, spacing: 8 * time.Millisecond, loss: 0.1, jitter: 50 * time.Millisecond},
	} {
		t.Run(path.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(11, uint64(path.packets)))
			history, recorder := NewCongestionHistory(), NewCongestionRecorder(DefaultConfig().Transport, 1)
			next := [5]uint16{0, 65_000, 30_000, 65_535, 1}
			var packets []crossing
			for i := range path.packets {
				stream := max(random.IntN(9)-4, 0)
				p := crossing{ssrc: uint32(stream), sequence: next[stream], sent: time.Duration(i) * path.spacing,
					left: ecn.Codepoint(random.IntN(3)), ecn: ecn.Codepoint(random.IntN(4))}
				if p.left == ecn.NotECT {
					p.ecn = ecn.NotECT
				}
				next[stream]++
				if i < 10*len(next) || random.Float64() >= path.loss {
					p.arrives = p.sent + 20*time.Millisecond
					if i >= 10*len(next) {
						p.arrives += time.Duration(random.Float64() * float64(path.jitter))
					}
				}
				packets = append(packets, p)
			}
			verdicts := cross(t, history, recorder, packets)
			checkCrossing(t, packets, verdicts)
			seconds := packets[len(packets)-1].sent.Seconds()
			r, h := recorder.Stats(), history.Stats()
			t.Logf("%.0f reports/s; %+v; %+v", float64(r.Reports)/seconds, r, h)
			if r.Old > 0 || r.Dropped > 0 || r.Restarts > 0 || h.Malformed > 0 {
				t.Errorf("%+v, %+v", r, h)
			}
		})
	}
}

// cross sends packets, and polls the receiver every 5 ms for a report, which arrives 20 ms later. It returns the
// results by the number of the packet.
func cross(t *testing.T, history *CongestionHistory, recorder *CongestionRecorder,
	packets []crossing) map[int64][]PacketResult {
	t.Helper()
	arriving := make([]*crossing, 0, len(packets))
	for i := range packets {
		if packets[i].arrives > 0 {
			arriving = append(arriving, &packets[i])
		}
	}
	slices.SortStableFunc(arriving, func(a, b *crossing) int { return cmp.Compare(a.arrives, b.arrives) })
	verdicts := map[int64][]PacketResult{}
	var waited, last time.Duration
	var results []PacketResult
	sent := 0
	for now := time.Duration(0); now < packets[len(packets)-1].sent+time.Second; now += 5 * time.Millisecond {
		// Results come later than the packet was sent, so one check on both sides is sufficient.
		for ; sent < len(packets) && packets[sent].sent <= now+40*time.Millisecond; sent++ {
			p := &packets[sent]
			p.place = history.Sent(p.ssrc, p.sequence, 1200, Media, p.left, after(p.sent))
		}
		for len(arriving) > 0 && arriving[0].arrives <= now {
			p := arriving[0]
			arriving = arriving[1:]
			recorder.Received(p.ssrc, p.sequence, 1200, p.ecn, after(p.arrives))
			if waited == 0 {
				waited = p.arrives
			}
		}
		for report := recorder.AppendReports(nil, after(now)); len(report) > 0; report = recorder.AppendReports(nil,
			after(now)) {
			if size := 4 * (int(binary.BigEndian.Uint16(report[2:])) + 1); size != len(report) ||
				size > DefaultConfig().Transport.MaxBytes {
				t.Fatalf("a report of %d bytes, of which its header knows %d", len(report), size)
			}
			if waits := now - max(waited, last); waits > maxReportInterval+5*time.Millisecond {
				t.Fatalf("a packet waited for its report for %v", waits)
			}
			results = history.Feedback(report, after(now+20*time.Millisecond), results[:0])
			for _, r := range results {
				verdicts[r.Sequence] = append(verdicts[r.Sequence], r)
			}
			waited, last = 0, now
		}
	}
	return verdicts
}

func checkCrossing(t *testing.T, packets []crossing, verdicts map[int64][]PacketResult) {
	t.Helper()
	newest := map[uint32]time.Duration{}
	for _, p := range packets {
		if p.arrives > 0 {
			newest[p.ssrc] = max(newest[p.ssrc], p.sent)
		}
	}
	var offset time.Duration
	for i, p := range packets {
		of := verdicts[p.place]
		if len(of) == 0 {
			if p.sent <= newest[p.ssrc] {
				t.Fatalf("no result for packet %d: %+v", i, p)
			}
			continue
		}
		final := of[len(of)-1]
		if final.SentECN != p.left {
			t.Fatalf("packet %d: %+v is reported to have left with %d", i, p, final.SentECN)
		}
		if len(of) > 2 || len(of) == 2 && (of[0].Received || !final.Late) || len(of) == 1 && final.Late ||
			final.Received != (p.arrives > 0) {
			t.Fatalf("packet %d: %+v became %+v", i, p, of)
		}
		if !final.Received {
			continue
		}
		if offset == 0 {
			offset = final.Arrived - p.arrives
		}
		if off := final.Arrived - p.arrives - offset; off.Abs() > 1100*time.Microsecond || final.ECN != p.ecn {
			t.Fatalf("packet %d: %+v is reported as arrived %v off the others, with %d", i, p, off, final.ECN)
		}
	}
}

// TestCongestionRecorderForgetsWhatNobodyFetches stops fetching reports: memory stays bounded, and reports continue
// afterwards.
func TestCongestionRecorderForgetsWhatNobodyFetches(t *testing.T) {
	r := NewCongestionRecorder(DefaultConfig().Transport, 1)
	now := time.Duration(0)
	for i := range 200_000 {
		now += 10 * time.Microsecond
		r.Received(7, uint16(i), 1200, ecn.NotECT, after(now))
	}
	if len(r.closed) > maxClosed || r.Stats().Dropped == 0 {
		t.Errorf("%d bytes of reports wait, %+v", len(r.closed), r.Stats())
	}
	var last CongestionReport
	for report := r.AppendReports(nil, after(now+time.Second)); len(report) > 0; report = r.AppendReports(nil,
		after(now+time.Second)) {
		if err := last.Unmarshal(report); err != nil {
			t.Fatal(err)
		}
	}
	s := last.Streams[0]
	if end := s.Begin + uint16(len(s.Packets)); end != uint16(200_000%(1<<16)) || !r.Next().IsZero() {
		t.Errorf("the last report ends before %d, and the next is due at %v", end, r.Next())
	}
}

// TestMarksOfCopiesAreReported receives copies of packets before and after the report: the arrival of the first copy is
// reported, with ECN-CE if a copy has it.
func TestMarksOfCopiesAreReported(t *testing.T) {
	r := NewCongestionRecorder(DefaultConfig().Transport, 1)
	for _, p := range []struct {
		sequence uint16
		ecn      ecn.Codepoint
		at       time.Duration
	}{{1, ecn.ECT1, 0}, {2, ecn.ECT1, 1}, {3, ecn.CE, 2}, {1, ecn.CE, 5}, {2, ecn.ECT0, 6},
		{3, ecn.ECT1, 7}} {
		r.Received(7, p.sequence, 1200, p.ecn, after(p.at*time.Millisecond))
	}
	var report CongestionReport
	if err := report.Unmarshal(r.AppendReports(nil, after(10*time.Millisecond))); err != nil {
		t.Fatal(err)
	}
	for i, want := range []PacketArrival{{true, ecn.CE, 10}, {true, ecn.ECT1, 9}, {true, ecn.CE, 8}} {
		if got := report.Streams[0].Packets[i]; got != want {
			t.Errorf("packet %d is reported as %+v, expected %+v", i+1, got, want)
		}
	}
	r.Received(7, 2, 1200, ecn.CE, after(20*time.Millisecond))
	if s := r.Stats(); s.Duplicates != 4 || !r.Next().IsZero() {
		t.Errorf("%d copies count, and a report is due at %v after a copy of a reported packet", s.Duplicates, r.Next())
	}
}

// FuzzCongestionRecorder passes arbitrary packets of three streams: reports can be parsed, stay within their size,
// report no packet as received that did not arrive, and have a bounded number of packets. Input is a byte for the
// stream and the time, and two for the number.
func FuzzCongestionRecorder(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 0, 2, 1, 255, 255, 1, 0, 0, 0x84, 0, 9})
	f.Add([]byte{0, 0, 1, 0, 16, 0, 0, 0, 2, 0xf0, 0, 3, 0, 32, 0, 0, 127, 0})
	f.Add(slices.Repeat([]byte{0, 0, 200, 1, 0, 1}, 70))
	f.Fuzz(func(t *testing.T, input []byte) {
		cfg := DefaultConfig().Transport
		cfg.MaxBytes = 100
		r := NewCongestionRecorder(cfg, 1)
		type key struct {
			ssrc     uint32
			sequence uint16
		}
		arrived := map[key]bool{}
		now, packets, reported := time.Duration(0), 0, 0
		var report CongestionReport
		for ; len(input) >= 3; input = input[3:] {
			packets++
			p := key{uint32(input[0] % 3), binary.BigEndian.Uint16(input[1:])}
			now += time.Duration(input[0]/3) * time.Millisecond
			arrived[p] = true
			r.Received(p.ssrc, p.sequence, 1200, ecn.Codepoint(p.sequence&3), after(now))
			for packet := r.AppendReports(nil, after(now)); len(packet) > 0; packet = r.AppendReports(nil, after(now)) {
				if err := report.Unmarshal(packet); err != nil || len(packet) > cfg.MaxBytes {
					t.Fatalf("a report of %d bytes: %v", len(packet), err)
				}
				for _, s := range report.Streams {
					reported += len(s.Packets)
					for i, a := range s.Packets {
						sequence := s.Begin + uint16(i)
						if a.Received && (!arrived[key{s.SSRC, sequence}] || a.ECN != ecn.Codepoint(sequence&3)) {
							t.Fatalf("%d of %d arrived according to the report, with %d", sequence, s.SSRC, a.ECN)
						}
					}
				}
			}
		}
		if most := maxStreamGap + (creditPerPacket+1)*packets; reported > most {
			t.Fatalf("%d numbers are reported of %d packets, expected %d at most", reported, packets, most)
		}
	})
}

func BenchmarkCongestionRecorder(b *testing.B) {
	r := NewCongestionRecorder(DefaultConfig().Transport, 1)
	var report []byte
	now, sequence := time.Duration(0), uint16(0)
	b.ReportAllocs()
	for b.Loop() {
		for range 100 {
			now += 100 * time.Microsecond
			r.Received(1, sequence, 1200, ecn.NotECT, after(now))
			sequence++
		}
		report = r.AppendReports(report[:0], after(now))
	}
}
