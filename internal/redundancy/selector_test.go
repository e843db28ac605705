package redundancy_test

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/redundancy"
)

func TestModes(t *testing.T) {
	for _, mode := range []redundancy.Mode{redundancy.Off, redundancy.Auto, redundancy.All} {
		if got, err := redundancy.ParseMode(mode.String()); got != mode || err != nil {
			t.Errorf("%v is read as %v, %v", mode, got, err)
		}
	}
	if got, err := redundancy.ParseMode(""); got != redundancy.Auto || err != nil {
		t.Errorf("no mode is read as %v, %v, expected auto", got, err)
	}
	if _, err := redundancy.ParseMode("some"); !errors.Is(err, redundancy.ErrMode) {
		t.Errorf("mode \"some\": %v, expected %v", err, redundancy.ErrMode)
	}
}

// TestBudget offers more packets of each class than the budget permits. Copies stay within 30 % of the sent bytes, and
// higher classes come first.
func TestBudget(t *testing.T) {
	for _, class := range []redundancy.Class{redundancy.Lowest, redundancy.Repair, redundancy.FrameEnd} {
		s := redundancy.New(redundancy.Auto, start)
		var stream, audio redundancy.Stream
		p := redundancy.Packet{SSRC: 1, Size: 1200, Class: class, Begins: true, Ends: class == redundancy.FrameEnd}
		if class == redundancy.FrameEnd {
			p.Class = redundancy.Other
		}
		heard := 0
		for n := range 20_000 {
			now := start.Add(time.Duration(n) * 20 * time.Millisecond)
			if n%10 == 0 && s.Select(&redundancy.Packet{SSRC: 2, Size: 200, Class: redundancy.Audio}, &audio, 0, now) {
				heard++
			}
			q := p
			q.Sequence = uint16(n)
			s.Select(&q, &stream, 0, now)
		}
		stats := s.Stats()
		copied := stats.Copied[class].Bytes + stats.Copied[redundancy.Audio].Bytes
		if share := float64(copied) / float64(stats.Sent.Bytes); share < 0.25 || share > 0.301 {
			t.Errorf("%v: copies are %.3f of the sent bytes, expected 0.25 to 0.30", class, share)
		}
		if heard != 2000 {
			t.Errorf("%v: %d of 2000 packets of audio are copied", class, heard)
		}
	}
}

// TestWholeFrames checks that a frame of the lowest quality is copied as a whole or not at all.
func TestWholeFrames(t *testing.T) {
	s := redundancy.New(redundancy.Auto, start)
	var stream redundancy.Stream
	whole := 0
	for frame := range 1000 {
		const packets = 7
		copied := 0
		for i := range packets {
			now := start.Add(time.Duration(frame)*33*time.Millisecond + time.Duration(i)*time.Millisecond)
			p := redundancy.Packet{
				SSRC: 1, Sequence: uint16(frame*packets + i), Size: 300, Class: redundancy.Lowest, Begins: i == 0,
			}
			if s.Select(&p, &stream, 0, now) {
				copied++
			}
		}
		switch copied {
		case 0:
		case packets:
			whole++
		default:
			t.Fatalf("frame %d: %d of %d packets are copied", frame, copied, packets)
		}
	}
	if whole < 200 || whole > 320 {
		t.Errorf("%d of 1000 frames are copied, expected about 300", whole)
	}
}

// TestForgedReports feeds reports about packets that were never sent, and about packets that were sent on the other
// path only. Nothing that is measured changes.
func TestForgedReports(t *testing.T) {
	s := redundancy.New(redundancy.Auto, start)
	var stream redundancy.Stream
	for n := range 100 {
		s.Select(&redundancy.Packet{SSRC: 1, Sequence: uint16(n), Size: 1200, Class: redundancy.Padding}, &stream, 0,
			start.Add(time.Duration(n)*time.Millisecond))
	}
	before := s.Second()
	for n := range 200 {
		r := redundancy.Report{Time: uint32(n+1) * 10_000, Paths: [redundancy.Paths]redundancy.PathReport{
			{Known: true, SSRC: 2, Sequence: uint16(n), Arrived: uint32(n), Packets: uint32(n)},
			{Known: true, SSRC: 1, Sequence: uint16(n), Arrived: uint32(n), Packets: 1 << 31},
		}}
		if began, err := s.Report(r.Append(nil), start.Add(100*time.Millisecond)); began || err != nil {
			t.Fatalf("report %d: outage begins: %v, %v", n, began, err)
		}
	}
	if after := s.Second(); after != before {
		t.Errorf("second path is %+v, expected %+v", after, before)
	}
}

// FuzzSelector feeds a Selector with arbitrary packets and reports. It must not panic, and copies no more than the
// highest rate of the second path and its credit permit. Each change of the primary path begins with a new credit.
func FuzzSelector(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20})
	f.Add([]byte{255, 0, 0, 0, 0, 0, 0, 255, 1, 1, 1, 1, 1, 1, 255, 2, 2, 2, 2, 2, 2})
	f.Fuzz(func(t *testing.T, script []byte) {
		s := redundancy.New(redundancy.Auto, start)
		var streams [4]redundancy.Stream
		now, copied := start, 0
		highest, credits, before := s.Second().Rate, 1, uint8(0)
		for ; len(script) >= 7; script = script[7:] {
			now = now.Add(time.Duration(script[1]) * time.Millisecond)
			if script[0] < 200 {
				p := redundancy.Packet{
					SSRC: uint32(script[2]), Sequence: binary.BigEndian.Uint16(script[3:]), Size: 8 * int(script[5]),
					Class: redundancy.Class(script[0]) % (redundancy.Padding + 1), Begins: script[6]&1 > 0,
					Ends: script[6]&2 > 0,
				}
				primary := script[6] >> 2 & 3
				if primary < redundancy.Paths && primary != before {
					before = primary
					credits++
				}
				if s.Select(&p, &streams[script[2]%4], primary, now) {
					copied += p.Size
				}
				highest = max(highest, s.Second().Rate)
				continue
			}
			r := redundancy.Report{Time: uint32(script[2]) << 20, Paths: [redundancy.Paths]redundancy.PathReport{
				{Known: script[6]&1 > 0, SSRC: uint32(script[2]), Sequence: binary.BigEndian.Uint16(script[3:]),
					Arrived: uint32(script[5]) << 18, Packets: uint32(script[6])},
				{Known: script[6]&2 > 0, SSRC: uint32(script[5]), Sequence: binary.BigEndian.Uint16(script[3:]),
					Arrived: uint32(script[2]) << 18, Packets: uint32(script[5])},
			}}
			if _, err := s.Report(r.Append(nil), now); err != nil {
				t.Fatal(err)
			}
			s.Stranded(now, func(uint32, uint16) {})
			highest = max(highest, s.Second().Rate)
		}
		second := s.Second()
		if !(second.Rate >= 0 && second.Rate <= 1e9 && second.Loss >= 0 && second.Loss <= 1) {
			t.Errorf("second path is %+v", second)
		}
		// A credit has one burst, and audio overdraws it by three, and by the last packet.
		const largest = 8 * 255
		burst := max(highest*0.05/8, 6000)
		most := highest/8*now.Sub(start).Seconds() + float64(credits)*(4*burst+largest)
		if float64(copied) > most {
			t.Errorf("%d bytes are copied, expected %.0f at most", copied, most)
		}
	})
}

// TestNoAllocations checks that neither a packet nor a report allocates memory.
func TestNoAllocations(t *testing.T) {
	s, r := redundancy.New(redundancy.Auto, start), redundancy.NewRecorder(1, start)
	var stream redundancy.Stream
	var report []byte
	now, n := start, uint16(0)
	step := func() {
		now, n = now.Add(time.Millisecond), n+1
		p := redundancy.Packet{SSRC: 1, Sequence: n, Size: 100, Class: redundancy.Audio}
		if s.Select(&p, &stream, 0, now) {
			r.Arrived(1, 1, n, now)
		}
		r.Arrived(0, 1, n, now)
		if report = r.AppendReport(report[:0], now); len(report) > 0 {
			if _, err := s.Report(report, now); err != nil {
				t.Fatal(err)
			}
		}
	}
	if allocations := testing.AllocsPerRun(1000, step); allocations > 0 {
		t.Errorf("%g allocations per packet, expected none", allocations)
	}
	if s.Second().State != redundancy.Carrying {
		t.Errorf("second path is %v, expected %v", s.Second().State, redundancy.Carrying)
	}
}

// BenchmarkSelect measures the cost of a packet to a peer with a second path.
func BenchmarkSelect(b *testing.B) {
	s := redundancy.New(redundancy.Auto, start)
	var stream redundancy.Stream
	now := start
	p := redundancy.Packet{SSRC: 1, Size: 1200, Class: redundancy.Other}
	for b.Loop() {
		now = now.Add(time.Millisecond)
		p.Sequence++
		p.Class = redundancy.Other
		s.Select(&p, &stream, 0, now)
	}
}

// TestOutageSuspendsTheCongestionControl: reports end. The congestion control is suspended for two seconds at most.
func TestOutageSuspendsTheCongestionControl(t *testing.T) {
	s := redundancy.New(redundancy.Auto, start)
	var stream redundancy.Stream
	var from, to time.Duration
	for n := range 500 {
		at := time.Duration(n) * 10 * time.Millisecond
		s.Select(&redundancy.Packet{SSRC: 1, Sequence: uint16(n), Size: 200, Class: redundancy.Audio}, &stream, 0,
			start.Add(at))
		if n < 100 {
			micros := uint32(at.Microseconds())
			arrived := redundancy.PathReport{Known: true, SSRC: 1, Sequence: uint16(n), Arrived: micros,
				Packets: uint32(n)}
			r := redundancy.Report{Time: micros, Paths: [redundancy.Paths]redundancy.PathReport{arrived, arrived}}
			if _, err := s.Report(r.Append(nil), start.Add(at)); err != nil {
				t.Fatal(err)
			}
		}
		if s.Suspended(start.Add(at)) {
			if from == 0 {
				from = at
			}
			to = at
		}
	}
	if from < time.Second || from > 1500*time.Millisecond || to-from < 1900*time.Millisecond ||
		to-from > 2*time.Second {
		t.Errorf("suspended from %v to %v, expected two seconds from 1.2 s on", from, to)
	}
}

// BenchmarkReport measures the cost of a report to a peer that has sent many packets: of a report about the newest
// packets, and of one about packets that were never sent.
func BenchmarkReport(b *testing.B) {
	for _, forged := range []bool{false, true} {
		name := "true"
		if forged {
			name = "forged"
		}
		b.Run(name, func(b *testing.B) {
			s := redundancy.New(redundancy.Auto, start)
			var streams [4]redundancy.Stream
			var sequence uint16
			for n := range 8000 {
				sequence = uint16(n / len(streams))
				s.Select(&redundancy.Packet{SSRC: uint32(1 + n%len(streams)), Sequence: sequence, Size: 1200,
					Class: redundancy.Other}, &streams[n%len(streams)], 0, start.Add(time.Duration(n)*time.Millisecond))
			}
			r := redundancy.Report{}
			for i := range r.Paths {
				r.Paths[i] = redundancy.PathReport{Known: true, SSRC: 1, Sequence: sequence}
				if forged {
					r.Paths[i].SSRC = 9
				}
			}
			now, packet := start.Add(8*time.Second), []byte(nil)
			for b.Loop() {
				now = now.Add(time.Millisecond)
				r.Time += 1000
				for i := range r.Paths {
					r.Paths[i].Packets++
					if forged {
						r.Paths[i].Sequence++
					}
				}
				packet = r.Append(packet[:0])
				if _, err := s.Report(packet, now); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestReportsAfterAPause checks that an overtaken report is ignored, and that reports are read after a pause of any
// length, although their times are modulo 2^32 µs.
func TestReportsAfterAPause(t *testing.T) {
	s := redundancy.New(redundancy.Auto, start)
	var stream redundancy.Stream
	report := func(at time.Time, age time.Duration, sequence uint16) {
		micros := uint32(at.Add(-age).Sub(start).Microseconds())
		r := redundancy.Report{Time: micros, Paths: [redundancy.Paths]redundancy.PathReport{
			1: {Known: true, SSRC: 1, Sequence: sequence, Arrived: micros, Packets: uint32(sequence)},
		}}
		if _, err := s.Report(r.Append(nil), at); err != nil {
			t.Fatal(err)
		}
	}
	send := func(at time.Time, sequence uint16) {
		s.Select(&redundancy.Packet{SSRC: 1, Sequence: sequence, Size: 100, Class: redundancy.Audio}, &stream, 0, at)
	}
	report(start.Add(time.Second), 0, 0)
	send(start.Add(1010*time.Millisecond), 1)
	report(start.Add(1020*time.Millisecond), 30*time.Millisecond, 1)
	if state := s.Second().State; state != redundancy.Untested {
		t.Errorf("second path is %v after an overtaken report, expected %v", state, redundancy.Untested)
	}
	later := start.Add(40 * time.Minute)
	send(later, 2)
	report(later.Add(10*time.Millisecond), 0, 2)
	if state := s.Second().State; state != redundancy.Carrying {
		t.Errorf("second path is %v after a pause of 40 minutes, expected %v", state, redundancy.Carrying)
	}
}

// TestDoubledAudio: audio leaves twice on the first path before a copy is reported on the second one, and while copies
// are overdue there, but not in an outage of the first path. Video leaves once.
func TestDoubledAudio(t *testing.T) {
	s, r := redundancy.New(redundancy.Auto, start), redundancy.NewRecorder(1, start)
	var audio, video redundancy.Stream
	now, number := start, uint16(0)
	// send sends for a time over paths that work or not, and returns how many packets of audio were doubled.
	send := func(d time.Duration, first, second bool) (doubled int) {
		for end := now.Add(d); now.Before(end); now = now.Add(20 * time.Millisecond) {
			number++
			sound := redundancy.Packet{SSRC: 1, Sequence: number, Size: 200, Class: redundancy.Audio}
			if !s.Select(&sound, &audio, 0, now) {
				t.Fatalf("packet %d of audio is not copied", number)
			}
			tile := redundancy.Packet{SSRC: 2, Sequence: number, Size: 1000, Class: redundancy.Lowest, Begins: true}
			if s.Select(&tile, &video, 0, now); tile.Doubled {
				t.Error("a packet of video is doubled")
			}
			if sound.Doubled {
				doubled++
			}
			for path, works := range []bool{first, second} {
				if works {
					r.Arrived(uint8(path), 1, number, now.Add(10*time.Millisecond))
				}
			}
			if report := r.AppendReport(nil, now.Add(15*time.Millisecond)); report != nil {
				if _, err := s.Report(report, now.Add(19*time.Millisecond)); err != nil {
					t.Fatal(err)
				}
			}
		}
		return doubled
	}
	if n := send(200*time.Millisecond, true, false); n != 10 {
		t.Errorf("%d of 10 packets are doubled before a copy is reported", n)
	}
	if n := send(2*time.Second, true, true); n > 3 {
		t.Errorf("%d packets are doubled while copies arrive, expected those before the first report", n)
	}
	if n := send(time.Second, true, false); n < 44 {
		t.Errorf("%d of 50 packets are doubled while copies are lost, expected all but those of 120 ms", n)
	}
	send(time.Second, true, true)
	if n := send(time.Second, false, true); n > 0 {
		t.Errorf("%d packets are doubled in an outage of the first path", n)
	}
}

// TestRepairsLost: in an outage of the first path, retransmissions beyond the rate of the second path are lost.
func TestRepairsLost(t *testing.T) {
	s, r := redundancy.New(redundancy.Auto, start), redundancy.NewRecorder(1, start)
	var audio, repairs redundancy.Stream
	number := uint16(0)
	for now := start; now.Before(start.Add(3 * time.Second)); now = now.Add(10 * time.Millisecond) {
		number++
		works := now.Before(start.Add(2 * time.Second))
		s.Select(&redundancy.Packet{SSRC: 1, Sequence: number, Size: 200, Class: redundancy.Audio}, &audio, 0, now)
		for path := range uint8(2) {
			if path == 1 || works {
				r.Arrived(path, 1, number, now.Add(5*time.Millisecond))
			}
		}
		if report := r.AppendReport(nil, now.Add(6*time.Millisecond)); report != nil {
			if _, err := s.Report(report, now.Add(9*time.Millisecond)); err != nil {
				t.Fatal(err)
			}
		}
		if works && s.RepairsLost(now) {
			t.Fatalf("%v: a retransmission is lost on a path that works", now.Sub(start))
		}
	}
	now, copied := start.Add(3*time.Second), 0
	for n := range uint16(100) {
		lost := s.RepairsLost(now)
		if s.Select(&redundancy.Packet{SSRC: 2, Sequence: n, Size: 1200, Class: redundancy.Repair}, &repairs, 0, now) {
			copied++
		} else if !lost {
			t.Fatalf("retransmission %d is not copied, and is not lost", n)
		}
	}
	if copied == 0 || copied > 50 || !s.RepairsLost(now) || s.RepairsLost(now.Add(time.Second)) {
		t.Errorf("%d of 100 retransmissions are copied, the next is lost: %v, and %v a second later", copied,
			s.RepairsLost(now), s.RepairsLost(now.Add(time.Second)))
	}
}
