package client

import (
	"slices"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/pkg/volumetric"
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
	m := newRig(t, Config{})
	publisher, _ := published(t, m, described("body", volumetric.MIMEVolumetric, 1, 2))
	p := &m.pacer
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
	a, b := publisher.lines[0], publisher.lines[1]
	add := func(ms, spread int, packets []outgoing) {
		p.add(pacedFrame{
			frame: frame{line: packets[0].line, publisher: publisher, track: packets[0].line.track}, packets: packets, begin: at(ms), spread: time.Duration(spread) * time.Millisecond,
		})
	}

	add(0, 12, packetsOf(a, 0, 1, 2, 3, 4))
	expect(0, 0)
	expect(2)
	expect(3, 1)
	expect(7, 2)
	expect(20, 3, 4)
	if !p.idle() {
		t.Error("not idle after the last packet")
	}

	add(30, 10, packetsOf(a, 10, 11, 12))
	add(31, 10, packetsOf(b, 20, 21))
	expect(31, 10, 20)
	add(32, 10, packetsOf(a, 13, 14))
	expect(32, 11, 12, 13)
	expect(60, 21, 14)

	add(70, 0, packetsOf(a, 30, 31))
	expect(70, 30, 31)
}

// pacedTrack makes a frame of a track of its own, of packets that take 1,000 bytes on the wire.
func pacedTrack(p *Publisher, track, packets int, begin time.Time, budget time.Duration) pacedFrame {
	body := make([]byte, 1000-congestion.PacketOverhead+8)
	return pacedFrame{
		frame:  frame{line: p.lines[track], publisher: p, track: track, payloads: slices.Repeat([][]byte{body}, packets)},
		begin:  begin,
		budget: budget,
	}
}

func TestPacerKeepsTheRate(t *testing.T) {
	m := newRig(t, Config{})
	p, _ := published(t, m, described("body", volumetric.MIMEVolumetric, 1, 4))
	start := time.Unix(100, 0)
	pacer := &m.pacer
	// 1 MB/s: 2,500 bytes per millisecond at 2.5 times the rate, and 12,500 bytes after a pause.
	pacer.limit(pacing.Path{Estimate: 8e6}, start)
	pacer.add(pacedTrack(p, 0, 60, start, 0))
	if n := len(pacer.due(start, nil)); n != 13 {
		t.Errorf("%d packets leave after a pause, want 13", n)
	}
	sent := 13
	for ms := 1; ms <= 10; ms++ {
		sent += len(pacer.due(start.Add(time.Duration(ms)*time.Millisecond), nil))
	}
	if sent < 13+24 || sent > 13+25 {
		t.Errorf("%d packets have left within 10 ms, want 13 at once and 2.5 per millisecond", sent)
	}
	// Retransmissions come first, and count.
	pacer.spend(10_000)
	if n := len(pacer.due(start.Add(13*time.Millisecond), nil)); n != 0 {
		t.Errorf("%d packets leave though 10 kB of retransmissions have just left, want none for 4 ms", n)
	}
	for ms := 14; ms < 60; ms++ {
		sent += len(pacer.due(start.Add(time.Duration(ms)*time.Millisecond), nil))
	}
	if sent != 60 || !pacer.idle() {
		t.Errorf("%d packets have left, want all 60", sent)
	}
	// Without an estimate nothing is held.
	pacer.limit(pacing.Path{}, start.Add(time.Second))
	pacer.add(pacedTrack(p, 1, 500, start.Add(time.Second), 0))
	if n := len(pacer.due(start.Add(time.Second), nil)); n != 500 {
		t.Errorf("%d packets leave without an estimate, want all 500", n)
	}
}

// TestShortFramesLeaveAtTheEstimate: where little of the estimate is used a frame is through in the time that a path of the estimate takes for it, or within its spread where that is shorter, and sooner in neither case.
func TestShortFramesLeaveAtTheEstimate(t *testing.T) {
	const spread = 13 * time.Millisecond
	for _, test := range []struct {
		name     string
		estimate int64
		want     time.Duration
	}{
		{"20 packets of 1,000 bytes at 32 Mbit/s", 32e6, 5 * time.Millisecond},
		{"at 80", 80e6, 2 * time.Millisecond},
		{"at the largest rate at which packets leave early", 1e9, 1333 * time.Microsecond},
		{"at 8 Mbit/s they would take 20 ms", 8e6, spread},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newRig(t, Config{})
			p, _ := published(t, m, described("body", volumetric.MIMEVolumetric, 1, 4))
			start := time.Unix(100, 0)
			m.pacer.limit(little(test.estimate), start)
			begin := start.Add(time.Second)
			f := pacedTrack(p, 0, 20, begin, 0)
			f.spread = spread
			m.pacer.add(f)
			now := begin
			for ; len(m.pacer.frames) > 0; now = now.Add(tick) {
				m.pacer.due(now, nil)
			}
			// What was saved up before leaves at once, and the last leaves at a tick.
			if took := now.Sub(begin) - tick; took > test.want+tick || took < test.want-earlySlack-tick {
				t.Errorf("the last packet left after %v, want about %v", took, test.want)
			}
		})
	}
}

// TestPacerLeavesWholeFramesOut offers 2 MB/s where there is 1 MB/s: half of the frames leave, from first to last, and the tracks have turns.
func TestPacerLeavesWholeFramesOut(t *testing.T) {
	m := newRig(t, Config{})
	p, _ := published(t, m, described("body", volumetric.MIMEVolumetric, 1, 4))
	start := time.Unix(100, 0)
	m.pacer.limit(pacing.Path{Estimate: 8e6}, start)
	const interval = 33 * time.Millisecond
	begun := make([]int, 4)
	left := make([]int, 4)
	packets := 0
	for ms := range 3300 {
		now := start.Add(time.Duration(ms) * time.Millisecond)
		if ms%33 == 0 {
			for track := range 4 {
				m.pacer.add(pacedTrack(p, track, 16, now, interval))
			}
		}
		for _, o := range m.pacer.due(now, nil) {
			packets++
			if o.header.Marker {
				begun[o.line.track]++
			}
		}
		for _, l := range m.pacer.left {
			left[l.track]++
		}
		m.pacer.left = m.pacer.left[:0]
	}
	whole := 0
	for track := range 4 {
		whole += begun[track]
		if begun[track] < 45 || begun[track] > 60 || begun[track]+left[track] < 98 {
			t.Errorf("track %d: %d frames left, %d were left out, want about half of 100 each", track, begun[track], left[track])
		}
		if next := p.lines[track].next; p.lines[track].history.Len() != 0 || int(next) < 16*begun[track] {
			t.Errorf("track %d has come to number %d", track, next)
		}
	}
	if packets < 16*whole || packets > 16*(whole+2) || packets > 3400+100 {
		t.Errorf("%d packets of %d whole frames", packets, whole)
	}
}

func TestAudioDoesNotWait(t *testing.T) {
	m := newRig(t, Config{})
	voice, _ := published(t, m, described("voice", volumetric.MIMEOpus, 1, 1))
	start := time.Unix(100, 0)
	m.pacer.limit(pacing.Path{Estimate: 8e6}, start)
	m.pacer.spend(1_000_000)
	m.pacer.add(pacedTrack(voice, 0, 1, start, budgetOf(voice.publication, 20*time.Millisecond, time.Second)))
	if n := len(m.pacer.due(start, nil)); n != 1 {
		t.Errorf("%d packets of audio leave where everything else waits, want 1", n)
	}
}

// TestProbesTakeMediaFirst: packets leave at the probe's rate before they are due, and then those that have left come again.
func TestProbesTakeMediaFirst(t *testing.T) {
	m := newRig(t, Config{})
	p, _ := published(t, m, described("body", volumetric.MIMEVolumetric, 1, 1))
	start := time.Now()
	m.pacer.limit(pacing.Path{Estimate: 8e6}, start)
	f := pacedTrack(p, 0, 10, start, 0)
	f.spread = 10 * time.Millisecond
	m.pacer.add(f)
	if n := len(m.pacer.ahead(start, 4500, nil)); n != 5 {
		t.Errorf("%d packets leave for 4,500 bytes, want 5", n)
	}
	due := m.pacer.ahead(start, 100_000, nil)
	if len(due) != 5 || !m.pacer.idle() {
		t.Fatalf("%d packets leave for 100 kB, want the 5 that remain", len(due))
	}
	for i := range due {
		due[i].keep(start)
	}
	m.padding = padding{line: p.lines[0], newest: due[4].header.SequenceNumber}
	padded := m.pad(8000+5*1000, due)
	if len(padded) != 5+8 {
		t.Fatalf("%d packets for 13 kB, want 8 more than 5", len(padded))
	}
	for i, o := range padded[5:] {
		number := uint16(o.payload[0])<<8 | uint16(o.payload[1])
		if want := due[4-i%5].header.SequenceNumber; number != want || o.header.SSRC != 101 || !o.repeated {
			t.Errorf("padding %d repeats packet %d on SSRC %d, want %d on 101", i, number, o.header.SSRC, want)
		}
	}
	if m.counts.ProbeBytes < 8000 || m.counts.ProbeBytes > 8100 {
		t.Errorf("%d bytes of padding are counted, want about 8,000", m.counts.ProbeBytes)
	}
}

// TestFewPacketsLeaveTogether expects frames of few packets to leave in the longest turns, those of many in the shortest, and others some 16 packets at a time.
func TestFewPacketsLeaveTogether(t *testing.T) {
	start := time.Unix(100, 0)
	const spread = 13 * time.Millisecond
	for _, test := range []struct {
		packets           int
		shortest, longest time.Duration
		most              int
	}{
		{27, maxTurn, maxTurn, 9},
		{261, 780 * time.Microsecond, 850 * time.Microsecond, 17},
		{2610, minTurn, minTurn, 51},
	} {
		m := newRig(t, Config{})
		publisher, _ := published(t, m, described("body", volumetric.MIMEVolumetric, 1, 1))
		f := pacedTrack(publisher, 0, test.packets, start, 0)
		f.spread = spread
		m.pacer.add(f)
		now, last, sent := start, start, 0
		for !m.pacer.idle() {
			n := len(m.pacer.due(now, nil))
			turn := m.pacer.turn(now, now)
			sent += n
			if n == 0 || n > test.most {
				t.Errorf("%d of %d packets leave after %v, expected 1 to %d", n, test.packets, now.Sub(start), test.most)
			}
			if now.Add(maxTurn).Before(start.Add(spread)) && (turn < test.shortest || turn > test.longest) {
				t.Errorf("%d packets have a turn of %v after %v, expected %v to %v", test.packets, turn, now.Sub(start), test.shortest, test.longest)
			}
			last = now
			now = now.Add(turn)
		}
		if sent != test.packets || last.Sub(start) > spread+minTurn {
			t.Errorf("%d of %d packets left, the last after %v", sent, test.packets, last.Sub(start))
		}
	}
}

// TestEndsOfFramesLeaveLast expects the last packets of frames behind all others of a turn, the longest of them first, and each track in its order. Frames of other codecs leave one after the
// other: a switch from one to the next would cut off the end.
func TestEndsOfFramesLeaveLast(t *testing.T) {
	start := time.Unix(100, 0)
	for _, test := range []struct {
		mimeType string
		short    []int // the sizes of what leaves, 0 for a full packet
	}{
		{volumetric.MIMEVolumetric, []int{0, 0, 0, 0, 0, 0, 200, 150, 100, 0}},
		{volumetric.MIMEH264, []int{0, 0, 100, 0, 0, 150, 0, 0, 200, 0}},
	} {
		m := newRig(t, Config{})
		publisher, _ := published(t, m, described("body", test.mimeType, 1, 3))
		for track := range 3 {
			f := pacedTrack(publisher, track, 3, start, 0)
			f.payloads[2] = f.payloads[2][:100+50*track]
			m.pacer.add(f)
		}
		// Another frame of the first track comes after the end of its first one.
		m.pacer.frames = append(m.pacer.frames, pacedTrack(publisher, 0, 1, start, 0))
		full := len(pacedTrack(publisher, 0, 1, start, 0).payloads[0])
		var sizes []int
		for _, o := range m.pacer.due(start, nil) {
			sizes = append(sizes, len(o.payload)%full)
		}
		if !slices.Equal(sizes, test.short) {
			t.Errorf("%s: payloads of %v bytes leave, expected %v", test.mimeType, sizes, test.short)
		}
	}
}

// TestPlanCatchesUp gives steps that come late: turns stay where they were to be, but for those that would be over already.
func TestPlanCatchesUp(t *testing.T) {
	start := time.Unix(100, 0)
	m := newRig(t, Config{})
	publisher, _ := published(t, m, described("body", volumetric.MIMEVolumetric, 1, 1))
	f := pacedTrack(publisher, 0, 5, start, 0)
	f.spread = 100 * time.Millisecond
	m.pacer.add(f)
	s := sender{media: m}
	m.pacer.due(start, nil)
	now := start
	for _, test := range []struct{ late, wait time.Duration }{
		{0, maxTurn},
		{300 * time.Microsecond, maxTurn - 300*time.Microsecond},
		{maxTurn - minTurn/2 - 1, minTurn/2 + 1},
		{maxTurn - minTurn/4, maxTurn},
		{50 * time.Millisecond, maxTurn},
	} {
		now = now.Add(test.late)
		if wait := s.plan(now); wait != test.wait {
			t.Errorf("%v late: a wait of %v, expected %v", test.late, wait, test.wait)
		}
		now = s.planned
	}
}

// TestTurnsAreShort expects turns of one tick where waiting longer would make something late.
func TestTurnsAreShort(t *testing.T) {
	start := time.Unix(100, 0)
	frameAt := func(begin time.Time) *media {
		m := newRig(t, Config{})
		publisher, _ := published(t, m, described("body", volumetric.MIMEVolumetric, 1, 2))
		for track, begin := range []time.Time{start, begin} {
			f := pacedTrack(publisher, track, 5, begin, 0)
			f.spread = 13 * time.Millisecond
			m.pacer.add(f)
		}
		return m
	}
	limited := func(path pacing.Path) *media {
		m := frameAt(start)
		m.pacer.limit(path, start)
		return m
	}
	owing := limited(pacing.Path{Estimate: 10e6})
	owing.pacer.spend(100_000)
	// The second frame of a track waits for the end of the first, though its own time is over.
	kept := frameAt(start)
	late := pacedTrack(kept.pacer.frames[0].publisher, 0, 5, start.Add(-20*time.Millisecond), 0)
	late.spread = 13 * time.Millisecond
	kept.pacer.frames = append(kept.pacer.frames, late)
	for name, test := range map[string]struct {
		media *media
		want  time.Duration
	}{
		"few packets":                            {frameAt(start), maxTurn},
		"another frame after that":               {frameAt(start.Add(maxTurn)), maxTurn},
		"another frame before that":              {frameAt(start.Add(tick / 2)), tick},
		"a path that is used":                    {limited(pacing.Path{Estimate: 10e6}), maxTurn},
		"a path of which little is used":         {limited(pacing.Path{Estimate: 10e6, ApplicationLimited: true}), tick},
		"a path that retransmissions have taken": {owing, tick},
		"a frame that has to wait":               {kept, tick},
	} {
		test.media.pacer.due(start, nil)
		if turn := test.media.pacer.turn(start, start); turn != test.want {
			t.Errorf("%s: a turn of %v, expected %v", name, turn, test.want)
		}
	}
}
