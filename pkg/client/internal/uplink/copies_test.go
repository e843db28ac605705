package uplink

import (
	"slices"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/redundancy"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// split is an uplink with a second path: sound, and a body of one tile at two qualities.
type split struct {
	*testing.T
	uplink      *Uplink
	now         time.Time
	body, sound *Publication
	recorder    *redundancy.Recorder
}

func newSplit(t *testing.T) *split {
	s := &split{T: t, uplink: newRig(t)}
	s.now = s.uplink.queue.started
	s.recorder = redundancy.NewRecorder(1, s.now)
	s.body, _ = published(t, s.uplink, described("body", volumetric.MIMEVolumetric, 1, 2))
	s.sound = NewPublication(described("sound", volumetric.MIMEOpus, 1, 1), defaultSpread, 0)
	s.uplink.Attach("s", &wire{mimeType: volumetric.MIMEOpus, ssrc: 200}, s.sound, 0, 0)
	s.uplink.SetRedundancy(redundancy.Auto)
	s.uplink.SetRoutes(true, 0, s.now)
	return s
}

// send sends a packet of sound and a frame of five short packets of each quality, at once, and returns what leaves.
func (s *split) send() (sent []Outgoing) {
	s.now = s.now.Add(40 * time.Millisecond)
	for _, p := range []*Publication{s.sound, s.body} {
		for track := range p.tracks {
			count := 5
			if p == s.sound {
				count = 1
			}
			f := &heldFrame{
				line: p.lines[track], publication: p, track: track, begin: s.now,
				payloads: slices.Repeat([][]byte{make([]byte, 100)}, count),
			}
			s.uplink.lineBySSRC[f.line.outlet.SSRC()] = f.line
			s.uplink.queue.add(f)
		}
	}
	sent = s.uplink.Depart(s.now, nil)
	for i := range sent {
		sent[i].Write()
	}
	return sent
}

// arrive makes packets arrive, on the first path only if it works, and passes the server's report to the uplink.
// arrive reports whether packets are to be retransmitted.
func (s *split) arrive(sent []Outgoing, works bool) (repairs bool) {
	at := s.now.Add(10 * time.Millisecond)
	for _, o := range sent {
		if works {
			s.recorder.Arrived(0, o.Header.SSRC, o.Header.SequenceNumber, at)
		}
		if o.Copied {
			s.recorder.Arrived(1, o.Header.SSRC, o.Header.SequenceNumber, at)
		}
	}
	if report := s.recorder.AppendReport(nil, at); report != nil {
		return s.uplink.PathReport(report, at)
	}
	return false
}

// copied returns the number of copies of a stream.
func copied(sent []Outgoing, ssrc uint32) (copies, all int) {
	for _, o := range sent {
		if o.Header.SSRC == ssrc {
			all++
			if o.Copied {
				copies++
			}
		}
	}
	return copies, all
}

func (s *split) expect(what string, sent []Outgoing, ssrc uint32, copies, all int) {
	s.Helper()
	if c, a := copied(sent, ssrc); c != copies || a != all {
		s.Errorf("%s: %d of %d packets are copied, expected %d of %d", what, c, a, copies, all)
	}
}

// TestCopies checks which packets leave on the second path, too.
func TestCopies(t *testing.T) {
	s := newSplit(t)
	sent := s.send()
	s.expect("sound", sent, 200, 1, 1)
	s.expect("lowest quality", sent, 100, 5, 5)
	s.expect("high quality", sent, 110, 1, 5)
	s.uplink.SetRoutes(false, 0, s.now)
	s.expect("sound without a second path", s.send(), 200, 0, 1)
	s.uplink.SetRedundancy(redundancy.Off)
	s.uplink.SetRoutes(true, 0, s.now)
	s.expect("sound in the mode off", s.send(), 200, 0, 1)
	before := s.uplink.Copies()
	if before.Used || before.Copied[redundancy.Lowest].Packets != 5 || before.Sent.Packets != 11 {
		t.Errorf("the copies are %+v, expected 5 packets of the lowest quality of 11", before)
	}
	if s.uplink.Reset(s.now); s.uplink.Copies().Stats != before.Stats {
		t.Errorf("the counts are %+v after the end of the connection", s.uplink.Copies().Stats)
	}
}

// TestLowestTaken: the lowest quality of a tile is copied if a receiver takes the quality, or if that is unknown.
func TestLowestTaken(t *testing.T) {
	s := newSplit(t)
	for _, test := range []struct {
		taken  []bool
		copies int
	}{{nil, 5}, {[]bool{false}, 1}, {[]bool{true}, 5}} {
		s.body.SetLowestTaken(test.taken)
		s.expect("lowest quality", s.send(), 100, test.copies, 5)
	}
}

// TestOutage interrupts the first path. After the server's report everything is copied, and what has left on the first
// path in vain is retransmitted.
func TestOutage(t *testing.T) {
	s := newSplit(t)
	for range 20 {
		if s.arrive(s.send(), true) {
			t.Fatal("there is an outage of a path that works")
		}
	}
	vain := map[uint16]bool{}
	began := false
	for range 10 {
		sent := s.send()
		for _, o := range sent {
			if o.Header.SSRC == 110 && !o.Copied {
				vain[o.Header.SequenceNumber] = true
			}
		}
		if began = s.arrive(sent, false); began {
			break
		}
	}
	if !began {
		t.Fatal("the outage is not noticed within 200 ms")
	}
	sent := s.send()
	s.expect("high quality in the outage", sent, 110, 5, 5)
	if copies, all := copied(sent, 111); copies != all || all != len(vain) {
		t.Errorf("%d of %d retransmissions are copied, expected all of %d", copies, all, len(vain))
	}
	if rate, outage := s.uplink.queue.copies.selector.Outage(); !outage || s.uplink.queue.limit() != rate {
		t.Errorf("the tracks are limited to %.0f bit/s, expected the rate of the second path, %.0f",
			s.uplink.queue.limit(),
			rate)
	}
	if stats := s.uplink.Copies(); stats.Outages != 1 || !stats.Used {
		t.Errorf("the copies are %+v, expected one outage", stats)
	}
}

// TestFramesLeaveInOutage interrupts the first path of an uplink with an estimate, whose reports of arrivals are not
// read then: frames are not held, since the second path carries their copies.
func TestFramesLeaveInOutage(t *testing.T) {
	s := newSplit(t)
	s.uplink.Number(1, false, limits(20e6, 0), s.now)
	recorder := feedback.NewTransportRecorder(feedback.DefaultConfig().Transport)
	// frame returns the number of packets of the high quality that leave within the frame interval of 40 ms.
	frame := func(works bool) (high int) {
		sent := s.send()
		for at := s.now; at.Before(s.now.Add(35 * time.Millisecond)); at = at.Add(time.Millisecond) {
			s.uplink.Step(at)
			begin := len(sent)
			sent = s.uplink.Depart(at, sent)
			for i := range sent[begin:] {
				sent[begin+i].Write()
			}
		}
		for _, o := range sent {
			if o.Header.SSRC == 110 {
				high++
			}
			var number rtp.TransportCCExtension
			if err := number.Unmarshal(o.Header.GetExtension(1)); err != nil {
				t.Fatal(err)
			}
			if works {
				recorder.Received(number.TransportSequence, 200, s.now.Add(10*time.Millisecond))
			}
		}
		s.arrive(sent, works)
		if report := recorder.AppendReports(nil, 1, 2, s.now.Add(35*time.Millisecond)); report != nil {
			s.uplink.Report(report, s.now.Add(36*time.Millisecond))
		}
		return high
	}
	for range 40 {
		frame(true)
	}
	if s.uplink.queue.sender.Limit() == 0 {
		t.Fatal("there is no estimate")
	}
	for range 5 {
		frame(false)
	}
	if _, outage := s.uplink.queue.copies.selector.Outage(); !outage {
		t.Fatal("the outage is not noticed within 200 ms")
	}
	for n := range 25 {
		if high := frame(false); high != 5 {
			t.Fatalf("frame %d of the outage: %d packets leave, expected 5", n, high)
		}
	}
}

// TestSecondPathReturns takes the second path away in an outage. When it returns, the outage has ended.
func TestSecondPathReturns(t *testing.T) {
	s := newSplit(t)
	for range 20 {
		s.arrive(s.send(), true)
	}
	for range 10 {
		s.arrive(s.send(), false)
	}
	selector := s.uplink.queue.copies.selector
	if _, outage := selector.Outage(); !outage {
		t.Fatal("the outage is not noticed within 400 ms")
	}
	s.uplink.SetRoutes(false, 0, s.now)
	s.send()
	s.uplink.SetRoutes(true, 0, s.now.Add(time.Second))
	if _, outage := selector.Outage(); outage || s.uplink.Copies().Outages != 1 {
		t.Errorf("the outage goes on: %v, %d outages, expected 1", outage, s.uplink.Copies().Outages)
	}
}

// TestPathReportsAreLimited checks that reports without a second path are ignored, and that too many are not read.
func TestPathReportsAreLimited(t *testing.T) {
	s := newSplit(t)
	report := (&redundancy.Report{Time: 1}).Append(nil)
	for range 2000 {
		s.uplink.PathReport(report, s.now)
	}
	if dropped := s.uplink.Counts().ReportsDropped; dropped < 900 {
		t.Errorf("%d of 2000 reports are not read, expected 1000", dropped)
	}
	if alone := newRig(t); alone.PathReport(report, s.now) || alone.Counts().ReportsDropped > 0 {
		t.Error("a report is read without a second path")
	}
}

// TestDoubledSound: sound leaves twice on the first path before copies are reported on the second one, and without a
// second path once there was one. No other packet does.
func TestDoubledSound(t *testing.T) {
	s := newSplit(t)
	expect := func(what string, doubled bool) {
		t.Helper()
		for _, o := range s.send() {
			if want := doubled && o.Header.SSRC == 200; o.Doubled != want {
				t.Errorf("%s: packet of stream %d is doubled: %v, expected %v", what, o.Header.SSRC, o.Doubled, want)
			}
		}
	}
	expect("before a report", true)
	for range 5 {
		s.arrive(s.send(), true)
	}
	expect("with two paths", false)
	s.uplink.SetRoutes(false, 0, s.now)
	expect("without the second path", true)
	s.uplink.SetRedundancy(redundancy.Off)
	s.uplink.SetRoutes(false, 0, s.now)
	expect("in the mode off", false)
}
