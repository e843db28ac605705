package egress

import (
	"slices"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/redundancy"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// routedPeer is a peer with two paths.
type routedPeer struct {
	fakePeer
	second, copied, doubled bool
	primary                 uint8
	// changes counts the calls of SetCopied. sent are the packets that outlets have queued.
	changes int
	sent    []routedPacket
}

// routedPacket is a packet that a routedPeer has sent.
type routedPacket struct {
	ssrc     uint32
	sequence uint16
	copied   bool
	doubled  bool
	body     []byte
}

func (p *routedPeer) SecondRoute() bool  { return p.second }
func (p *routedPeer) PrimaryPath() uint8 { return p.primary }

func (p *routedPeer) SetCopied(copied bool) {
	p.copied = copied
	p.changes++
}

func (p *routedPeer) SetDoubled(doubled bool) { p.doubled = doubled }

// routedOutlet is an outlet of a routedPeer.
type routedOutlet struct {
	*fakeOutlet
	routes *routedPeer
}

func (o routedOutlet) Queue(h *rtp.Header, payload []byte) error {
	o.routes.sent = append(o.routes.sent,
		routedPacket{h.SSRC, h.SequenceNumber, o.routes.copied, o.routes.doubled, slices.Clone(payload)})
	return o.fakeOutlet.Queue(h, payload)
}

// split is a receiver with a second path, and slots for audio, for a tile of the lowest quality, and for a tile of a
// higher one.
type split struct {
	*rig
	peer                *routedPeer
	receiver            *Receiver
	audio, lowest, high *routedSlot
	recorder            *redundancy.Recorder
	// recorded is the number of packets that have arrived.
	recorded int
}

// routedSlot is a slot and its source.
type routedSlot struct {
	*Slot
	outlet    *fakeOutlet
	publisher *publisher
}

func newSplit(t *testing.T, mode redundancy.Mode) *split { return newSplitOf(newRig(t, nil), mode) }

func newSplitOf(r *rig, mode redundancy.Mode) *split {
	s := &split{rig: r, peer: &routedPeer{second: true}}
	s.receiver = s.engine.NewReceiver(s.peer, time.Hour)
	s.receiver.SetRedundancy(mode)
	s.recorder = redundancy.NewRecorder(1, s.now)
	i := s.ingress(&fakePeer{})
	s.audio = s.add(i, 10, volumetric.MIMEOpus, 0)
	s.lowest = s.add(i, 20, volumetric.MIMEVolumetric, 0)
	s.high = s.add(i, 30, volumetric.MIMEVolumetric, 2)
	s.run()
	s.send()
	s.peer.sent, s.peer.changes = nil, 0
	return s
}

// add publishes a track and adds a slot that carries it.
func (s *split) add(i *ingress.Ingress, ssrc uint32, mime string, quality volumetric.Quality) *routedSlot {
	clockRate, kind := uint32(90000), volumetric.KindVideo
	if mime == volumetric.MIMEOpus {
		clockRate, kind = 48000, volumetric.KindAudio
	}
	added := s.engine.NewTrack(track.Config{
		Codec: volumetric.Codec{MIMEType: mime, ClockRate: clockRate}, Quality: quality,
	})
	i.Bind(ssrc, ssrc+1, added)
	slot := &routedSlot{outlet: newFakeOutlet(&s.peer.fakePeer, 100*ssrc)}
	slot.publisher = &publisher{Publisher: forwardtest.NewPublisher(s.t, i, ssrc), ingress: i, track: added}
	slot.Slot = s.receiver.AddSlot(routedOutlet{slot.outlet, s.peer}, kind)
	slot.Select(added, uint64(ssrc), s.now)
	return slot
}

// send sends a packet of audio, a packet of the lowest quality, and a frame of two packets of the high quality, 40 ms
// after the last.
func (s *split) send() {
	s.now = s.now.Add(40 * time.Millisecond)
	s.audio.publisher.Timestamp += 960
	s.audio.publisher.Send(s.now, s.audio.publisher.Packet(make([]byte, 100), true))
	for size, slot := range map[int]*routedSlot{600: s.lowest, 1500: s.high} {
		slot.publisher.Next()
		slot.publisher.Send(s.now, slot.publisher.Packets(size)...)
	}
	s.run()
}

// arrive makes the packets sent since the last call arrive, on the first path only if it works, and passes the
// receiver's report to the server.
func (s *split) arrive(works bool) {
	at := s.now.Add(10 * time.Millisecond)
	for _, p := range s.peer.sent[s.recorded:] {
		if works {
			s.recorder.Arrived(0, p.ssrc, p.sequence, at)
		}
		if p.copied {
			s.recorder.Arrived(1, p.ssrc, p.sequence, at)
		}
	}
	s.recorded = len(s.peer.sent)
	if report := s.recorder.AppendReport(nil, at); report != nil {
		s.receiver.RTCP(report, at)
	}
	s.run()
}

// copies returns the numbers of copied and of all packets of a stream.
func (s *split) copies(ssrc uint32) (copied, all int) {
	for _, p := range s.peer.sent {
		if p.ssrc == ssrc {
			all++
			if p.copied {
				copied++
			}
		}
	}
	return copied, all
}

func (s *split) expect(what string, ssrc uint32, copied, all int) {
	s.t.Helper()
	if c, a := s.copies(ssrc); c != copied || a != all {
		s.t.Errorf("%s: %d of %d packets are copied, expected %d of %d", what, c, a, copied, all)
	}
}

// TestCopiesByClass checks which packets leave on the second path, too, and that the counters count them.
func TestCopiesByClass(t *testing.T) {
	s := newSplit(t, redundancy.Auto)
	s.send()
	s.expect("audio", s.audio.outlet.ssrc, 1, 1)
	s.expect("lowest quality", s.lowest.outlet.ssrc, 1, 1)
	s.expect("high quality", s.high.outlet.ssrc, 1, 2)
	for _, p := range s.peer.sent {
		if p.ssrc == s.high.outlet.ssrc && p.copied != (p.sequence == s.high.header.SequenceNumber) {
			t.Errorf("packet %d of the high quality is copied: %v, expected only the last", p.sequence, p.copied)
		}
	}
	s.now = s.now.Add(20 * time.Millisecond)
	s.high.retransmitFirst(t, s.receiver, s.now)
	s.run()
	s.expect("retransmission", s.high.outlet.rtx, 1, 1)
	s.lowest.SetSeen(false)
	s.peer.sent = nil
	s.send()
	s.expect("lowest quality of an unseen tile, whose only packet is the end of a frame", s.lowest.outlet.ssrc, 1, 1)
	s.receiver.SetRedundancy(redundancy.Off)
	s.peer.sent = nil
	s.send()
	s.expect("audio in the mode off", s.audio.outlet.ssrc, 0, 1)
	s.receiver.SetRedundancy(redundancy.Auto)
	s.peer.sent, s.peer.second = nil, false
	s.send()
	s.expect("audio without a second path", s.audio.outlet.ssrc, 0, 1)
	s.peer.second = true
	s.send()
	s.recorder.Arrived(1, s.audio.outlet.ssrc, 0, s.now)
	s.arrive(true)
	stats := s.engine.Stats()
	for class, want := range map[redundancy.Class]uint64{
		// The first frames were sent before the slots' packets were looked at.
		redundancy.Audio: 4, redundancy.Lowest: 2, redundancy.FrameEnd: 6, redundancy.Repair: 1, redundancy.Other: 0,
	} {
		if got := stats.Copied[class]; got.Packets != want || want > 0 && got.Bytes == 0 {
			t.Errorf("%v: %d packets with %d bytes are counted, expected %d packets", class, got.Packets, got.Bytes,
				want)
		}
	}
}

// retransmitFirst makes the receiver request the first packet of the newest frame of five.
func (s *routedSlot) retransmitFirst(t *testing.T, r *Receiver, now time.Time) {
	t.Helper()
	sub := &subscriber{outlet: s.outlet, receiver: r, slot: s.Slot}
	sent := s.outlet.sent()
	sub.nack(t, now, sent[len(sent)-2].SequenceNumber)
}

// TestOutageOfFirstPath interrupts the first path. After the receiver's report everything is copied, and the packets
// that the first path has lost are retransmitted.
func TestOutageOfFirstPath(t *testing.T) {
	s := newSplit(t, redundancy.Auto)
	for range 20 {
		s.send()
		s.arrive(true)
	}
	if path := s.receiver.Path(); path.Second == nil || path.Second.State != redundancy.Carrying || path.Second.Outage {
		t.Errorf("second path is %+v, expected one that carries copies, and no outage", path.Second)
	}
	before := len(s.peer.sent)
	for range 10 {
		s.send()
		s.arrive(false)
		if s.receiver.Path().Second.Outage {
			break
		}
	}
	if !s.receiver.Path().Second.Outage {
		t.Fatal("the outage is not noticed within 200 ms")
	}
	lost := map[uint16]bool{}
	for _, p := range s.peer.sent[before:] {
		if p.ssrc == s.high.outlet.ssrc && !p.copied {
			lost[p.sequence] = true
		}
	}
	s.pass(20 * time.Millisecond)
	for _, p := range s.high.outlet.repaired() {
		delete(lost, uint16(p.Payload[0])<<8|uint16(p.Payload[1]))
	}
	if len(lost) > 0 {
		t.Errorf("%d packets that were lost on the first path are not retransmitted", len(lost))
	}
	if copied, all := s.copies(s.high.outlet.rtx); copied != all || all == 0 {
		t.Errorf("%d of %d retransmissions are copied, expected all of some", copied, all)
	}
	stats := s.engine.Stats()
	if stats.Outages != 1 || stats.NACKed.Answered != 0 {
		t.Errorf("%d outages and %d answered requests, expected 1 and 0", stats.Outages, stats.NACKed.Answered)
	}
	s.peer.sent, s.recorded = nil, 0
	s.send()
	s.expect("high quality in the outage", s.high.outlet.ssrc, 2, 2)
	for range 20 {
		s.arrive(true)
		s.send()
	}
	if s.receiver.Path().Second.Outage {
		t.Error("the outage has not ended 400 ms after the first path works again")
	}
}

// TestFramesLeaveInOutage interrupts the first path to a receiver with an estimate, whose reports of arrivals are not
// read then: frames are not held, since the second path carries their copies.
func TestFramesLeaveInOutage(t *testing.T) {
	s := newSplitOf(newPacedRig(t, pacing.Default, nil), redundancy.Auto)
	recorder := feedback.NewTransportRecorder(feedback.DefaultConfig().Transport)
	s.peer.agree(testExtension)
	frame := func(works bool) {
		s.peer.numbers(t, testExtension)
		s.send()
		s.ticks(10 * time.Millisecond)
		s.arrive(works)
		for _, number := range s.peer.numbers(t, testExtension) {
			if works {
				recorder.Received(uint16(number), 1200, s.now)
			}
		}
		if report := recorder.AppendReports(nil, 1, 2, s.now); report != nil {
			s.receiver.RTCP(report, s.now)
		}
		s.ticks(10 * time.Millisecond)
	}
	for range 40 {
		frame(true)
	}
	if path := s.receiver.Path(); !path.Known {
		t.Fatal("the path is not known")
	}
	for range 5 {
		frame(false)
	}
	if !s.receiver.Path().Second.Outage {
		t.Fatal("the outage is not noticed within 300 ms")
	}
	s.peer.sent, s.recorded = nil, 0
	for range 25 {
		frame(false)
	}
	// The rate of the second path bounds the copies of the high quality.
	if copied, all := s.copies(s.high.outlet.ssrc); copied == 0 || all != 50 {
		t.Errorf("%d of %d packets of the high quality are copied, expected some of 50", copied, all)
	}
	if copied, all := s.copies(s.lowest.outlet.ssrc); copied != 25 || all != 25 {
		t.Errorf("%d of %d packets of the lowest quality are copied, expected 25 of 25", copied, all)
	}
}

// TestSecondPathReturns takes the second path away for two seconds. Reports of this time are not read. When the second
// path returns, the missing reports are no outage of the first path, which would bound the estimate.
func TestSecondPathReturns(t *testing.T) {
	s := newSplit(t, redundancy.Auto)
	pass := func(frames int) {
		for range frames {
			s.send()
			s.arrive(true)
		}
	}
	pass(20)
	s.send()
	s.peer.second = false
	pass(50)
	s.peer.second = true
	pass(5)
	if path := s.receiver.Path(); path.Second == nil || path.Second.Outage || s.engine.Stats().Outages != 0 {
		t.Errorf("second path is %+v, %d outages, expected none", path.Second, s.engine.Stats().Outages)
	}
}

// TestPathReportsOfOthers checks that reports are not read from receivers without a second path, and that malformed
// ones are counted.
func TestPathReportsOfOthers(t *testing.T) {
	s := newSplit(t, redundancy.Auto)
	report := (&redundancy.Report{Time: 1}).Append(nil)
	report[3]++
	s.receiver.RTCP(report, s.now)
	s.run()
	if got := s.engine.Stats().MalformedRTCP; got != 1 {
		t.Errorf("%d malformed packets, expected 1", got)
	}
	s.peer.second = false
	s.receiver.RTCP(report, s.now)
	s.run()
	if got := s.engine.Stats().MalformedRTCP; got != 1 {
		t.Errorf("%d malformed packets after a report without a second path, expected 1", got)
	}
}

// TestDoubledAudio: audio leaves twice on the first path before copies are reported on the second one, and without a
// second path once there was one. No other packet does.
func TestDoubledAudio(t *testing.T) {
	s := newSplit(t, redundancy.Auto)
	expect := func(what string, doubled bool) {
		t.Helper()
		s.peer.sent, s.recorded = nil, 0
		s.send()
		s.now = s.now.Add(20 * time.Millisecond)
		s.high.retransmitFirst(t, s.receiver, s.now)
		s.run()
		for _, p := range s.peer.sent {
			if want := doubled && p.ssrc == s.audio.outlet.ssrc; p.doubled != want {
				t.Errorf("%s: packet %d of stream %d is doubled: %v, expected %v", what, p.sequence, p.ssrc, p.doubled,
					want)
			}
		}
		if _, repairs := s.copies(s.high.outlet.rtx); repairs == 0 {
			t.Errorf("%s: no packet is retransmitted", what)
		}
	}
	expect("before a report", true)
	for range 5 {
		s.send()
		s.arrive(true)
	}
	expect("with two paths", false)
	s.peer.second = false
	expect("without the second path", true)
	s.receiver.SetRedundancy(redundancy.Off)
	expect("in the mode off", false)
}
