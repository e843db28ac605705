package egress

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/race"
)

// The hand-over times and bounds of package trace.
const (
	timesAge      = 100 * time.Millisecond
	timesInterval = 500 * time.Millisecond
	unendedAge    = time.Second
	stampInterval = 20 * time.Millisecond
	maxSentStamps = 256
	keptTimes     = 2048
)

// stampedPeer requests stamps.
type stampedPeer struct {
	*fakePeer
	asked int
}

func (p *stampedPeer) StampNext() { p.asked++ }

// tracedStage returns a publisher and a traced receiver.
func tracedStage(t *testing.T, change func(*rigConfig)) (*rig, *publisher, *subscriber) {
	t.Helper()
	r := newRig(t, change)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.slot.Select(p.track, 1, r.now)
	s.receiver.TraceFrames(true)
	r.run()
	return r, p, s
}

// taken advances the time until times are handed over, and takes them.
func (r *rig) taken(s *subscriber) []FrameTimes {
	r.pass(timesAge + timesInterval + 2*HousekeepingInterval)
	return s.receiver.TakeFrameTimes(nil)
}

// near compares a stamp with a time. Packets of one batch differ by a nanosecond each.
func near(stamp int64, at time.Time) bool {
	return time.Duration(stamp-at.UnixNano()).Abs() < time.Microsecond
}

// TestFrameTimes sends a frame of ten packets in two batches, 3 ms apart. The frame leaves as it arrives.
func TestFrameTimes(t *testing.T) {
	r, p, s := tracedStage(t, nil)
	p.Next()
	p.Send(r.now, p.Packets(1144)...)
	r.pass(33 * time.Millisecond)
	begin := r.now
	for frame := range 3 {
		p.Next()
		packets := p.Packets(10 * 1144)
		p.Send(r.now, packets[:4]...)
		r.run()
		r.now = r.now.Add(3 * time.Millisecond)
		p.Send(r.now, packets[4:]...)
		r.run()
		r.now = begin.Add(time.Duration(frame+1) * 33 * time.Millisecond)
	}
	times := r.taken(s)
	if len(times) != 4 {
		t.Fatalf("times of %d frames, expected 4", len(times))
	}
	for i, f := range times[1:] {
		in := begin.Add(time.Duration(i) * 33 * time.Millisecond)
		if f.Slot != s.slot || f.Track != p.track || f.Frame != uint32(i+2) || f.Bytes != 10*1144 {
			t.Errorf("frame %d is %+v", i, f)
		}
		last := in.Add(3 * time.Millisecond)
		if !near(f.FirstIn, in) || !near(f.FirstOut, in) || !near(f.LastIn, last) || !near(f.LastOut, last) {
			t.Errorf("frame %d came from %d to %d and left from %d to %d, expected %v and %v", i, f.FirstIn, f.LastIn,
				f.FirstOut, f.LastOut, in, last)
		}
		if f.FirstInKernel != 0 || f.FirstOutKernel != 0 {
			t.Errorf("frame %d has stamps of a kernel that told nothing", i)
		}
	}
	if len(s.receiver.TakeFrameTimes(nil)) != 0 {
		t.Error("times are given twice")
	}
	stats := r.engine.Stats()
	if n := stats.FrameHold.Count(); n != 4 || stats.FrameDistribution.Count() != 4 ||
		stats.FrameReception.Sum.Round(time.Millisecond) != 9*time.Millisecond {
		t.Errorf("counted %d frames, received in %v, expected 4, three of them in 3 ms each", n,
			stats.FrameReception.Sum)
	}
}

// TestFrameTimesLong checks that a frame that takes long to leave is not reported before its last packet has left.
func TestFrameTimesLong(t *testing.T) {
	r, p, s := tracedStage(t, nil)
	p.Next()
	packets := p.Packets(10 * 1144)
	begin := r.now
	for i, packet := range packets {
		p.Send(r.now, packet)
		r.run()
		if i < len(packets)-1 {
			r.pass(40 * time.Millisecond)
		}
	}
	last := r.now
	times := r.taken(s)
	if len(times) != 1 || !near(times[0].FirstOut, begin) || !near(times[0].LastIn, last) ||
		!near(times[0].LastOut, last) {
		t.Errorf("times are %+v, expected those of one frame from %d to %d", times, begin.UnixNano(), last.UnixNano())
	}
}

// TestFrameTimesUnended checks that a frame without its last packet is reported with the packets it has.
func TestFrameTimesUnended(t *testing.T) {
	r, p, s := tracedStage(t, nil)
	p.Next()
	packets := p.Packets(10 * 1144)
	p.Send(r.now, packets[:6]...)
	r.run()
	if times := r.taken(s); len(times) != 0 {
		t.Fatalf("times are %+v, expected none while the frame may go on", times)
	}
	r.pass(unendedAge + timesInterval)
	if times := s.receiver.TakeFrameTimes(nil); len(times) != 1 {
		t.Errorf("times of %d frames, expected 1", len(times))
	}
}

// TestFrameTimesPaced checks that the pacer's delay shows between arrival and departure.
func TestFrameTimesPaced(t *testing.T) {
	r, p, s := tracedStage(t, func(c *rigConfig) { c.Pacing = pacing.Default })
	begin := r.now
	for range 20 {
		p.Next()
		p.Send(r.now, p.Packets(50*1144)...)
		r.ticks(33 * time.Millisecond)
	}
	times := r.taken(s)
	if len(times) != 20 {
		t.Fatalf("times of %d frames, expected 20", len(times))
	}
	for _, f := range times[5:] {
		if hold := time.Duration(f.FirstOut - f.FirstIn); hold > 2*time.Millisecond {
			t.Errorf("the first packet of frame %d was held for %v, expected it to leave at once", f.Frame, hold)
		}
		if spread := time.Duration(f.LastOut - f.FirstOut); spread < 10*time.Millisecond ||
			spread > 15*time.Millisecond {
			t.Errorf("frame %d left within %v, expected 0.4 of a frame interval", f.Frame, spread)
		}
	}
	if times[0].FirstIn < begin.UnixNano() {
		t.Error("a frame came before the test began")
	}
}

// TestFrameTimesLate checks that a repair of the frame before counts for that frame, and a repair of an older frame for
// none.
func TestFrameTimesLate(t *testing.T) {
	r, p, s := tracedStage(t, nil)
	var kept [][]byte
	for frame := range 3 {
		p.Next()
		packets := p.Packets(5 * 1144)
		if frame < 2 {
			kept = append(kept, packets[2])
			packets = append(packets[:2:2], packets[3:]...)
		}
		p.Send(r.now, packets...)
		r.run()
		r.now = r.now.Add(10 * time.Millisecond)
	}
	p.Repair(r.now, kept...)
	late := r.now
	r.run()
	times := r.taken(s)
	if len(times) != 3 {
		t.Fatalf("times of %d frames, expected 3", len(times))
	}
	byNumber := make(map[uint32]FrameTimes)
	for _, f := range times {
		byNumber[f.Frame] = f
	}
	if got := byNumber[2].LastIn; !near(got, late) {
		t.Errorf("the last packet of the frame that was repaired came at %d, expected %d", got, late.UnixNano())
	}
	if got := byNumber[1].LastIn; got >= late.UnixNano() {
		t.Errorf("the last packet of the first frame came at %d, expected before the repair", got)
	}
}

// TestFrameTimesOnce checks that a repair of a reported frame does not cause a second report, as of a frame that began
// with the repair.
func TestFrameTimesOnce(t *testing.T) {
	r, p, s := tracedStage(t, nil)
	p.Next()
	packets := p.Packets(5 * 1144)
	begin := r.now
	p.Send(r.now, append(packets[:2:2], packets[3:]...)...)
	r.pass(timesAge + 2*HousekeepingInterval)
	p.Repair(r.now, packets[2])
	r.run()
	if sent := len(s.outlet.sent()); sent != 5 {
		t.Fatalf("%d packets were sent, expected 5", sent)
	}
	times := r.taken(s)
	if len(times) != 1 || !near(times[0].FirstIn, begin) {
		t.Errorf("times of %d frames, expected those of one, which came at %d: %+v", len(times), begin.UnixNano(),
			times)
	}
}

// TestFrameTimesKernel checks that the kernel's stamps are the first packet's, and that stamps of sent packets are
// matched by sequence number.
func TestFrameTimesKernel(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{})
	p := r.publish(i, 10, volumetric.MIMEVolumetric)
	peer := &stampedPeer{fakePeer: &fakePeer{}}
	s := &subscriber{peer: peer.fakePeer, outlet: newFakeOutlet(peer.fakePeer, 1000)}
	s.receiver = r.engine.NewReceiver(peer, time.Hour)
	s.slot = s.receiver.AddSlot(s.outlet, volumetric.KindVideo)
	s.slot.Select(p.track, 1, r.now)
	s.receiver.TraceFrames(true)
	r.run()
	for range 3 {
		p.Next()
		packets := p.Packets(4 * 1144)
		kernel, hardware := r.now.Add(-20*time.Microsecond), r.now.Add(-30*time.Microsecond)
		p.SendInfo(&transport.PacketInfo{At: r.now, Kernel: kernel, Hardware: hardware}, packets[:2]...)
		r.run()
		p.SendInfo(&transport.PacketInfo{At: r.now, Kernel: r.now}, packets[2:]...)
		r.run()
		r.now = r.now.Add(stampInterval / 2)
	}
	if peer.asked != 2 {
		t.Errorf("%d stamps were asked for, expected those of every other frame", peer.asked)
	}
	sent := s.outlet.take3(t)
	left := r.now
	s.receiver.PacketSent(1000, sent[0], time.Time{}, left.Add(5*time.Microsecond))
	s.receiver.PacketSent(1000, sent[0], left, time.Time{})
	for n := range uint16(maxSentStamps) {
		s.receiver.PacketSent(77, n, left, time.Time{})
	}
	s.receiver.PacketSent(1000, sent[2], left, time.Time{})
	times := r.taken(s)
	if len(times) != 3 {
		t.Fatalf("times of %d frames, expected 3", len(times))
	}
	for n, f := range times {
		if got := time.Duration(f.FirstIn - f.FirstInKernel); got.Round(time.Microsecond) != 20*time.Microsecond {
			t.Errorf("frame %d: %v from the kernel to the program, expected 20 µs", n, got)
		}
		if got := time.Duration(f.FirstInKernel - f.FirstInHardware); got != 10*time.Microsecond {
			t.Errorf("frame %d: %v from the card to the kernel, expected 10 µs", n, got)
		}
	}
	if !near(times[2].FirstOutKernel, left) || times[1].FirstOutKernel != 0 {
		t.Errorf("sent by the kernel at %d and %d, expected none and %v", times[1].FirstOutKernel,
			times[2].FirstOutKernel, left)
	}
}

// take3 returns the sequence numbers of the first packets of three frames of four packets.
func (o *fakeOutlet) take3(t *testing.T) [3]uint16 {
	t.Helper()
	packets := o.sent()
	if len(packets) != 12 {
		t.Fatalf("%d packets were sent, expected 12", len(packets))
	}
	return [3]uint16{packets[0].SequenceNumber, packets[4].SequenceNumber, packets[8].SequenceNumber}
}

// TestFrameTimesUnwanted checks that no times are kept if they are not wanted, and that times that are not taken are
// bounded and counted.
func TestFrameTimesUnwanted(t *testing.T) {
	race.SkipSequential(t)
	r, p, s := tracedStage(t, nil)
	s.receiver.TraceFrames(false)
	send := func() {
		p.Next()
		p.Send(r.now, p.Packets(1144)...)
		r.run()
		r.now = r.now.Add(time.Millisecond)
	}
	for range 10 {
		send()
	}
	times, stats := r.taken(s), r.engine.Stats()
	if len(times) != 0 || stats.FrameHold.Count() != 0 {
		t.Errorf("times of %d frames that were not requested", len(times))
	}
	s.receiver.TraceFrames(true)
	for range 3 * keptTimes {
		send()
	}
	times = r.taken(s)
	if dropped := r.engine.Stats().TimesDropped; len(times) != keptTimes || dropped == 0 ||
		len(times)+int(dropped) > 3*keptTimes {
		t.Errorf("times of %d frames, %d dropped, expected %d and the rest", len(times), dropped, keptTimes)
	}
	select {
	case <-s.receiver.FrameTimesReady():
	default:
		t.Error("FrameTimesReady is not signalled")
	}
}

// restamp makes a packet the first packet of the current frame.
func (p *publisher) restamp(packet []byte) {
	binary.BigEndian.PutUint16(packet[2:], p.Sequence)
	binary.BigEndian.PutUint32(packet[4:], p.Timestamp)
	binary.BigEndian.PutUint32(packet[rtpHeader+8:], p.Number)
	p.Sequence++
}

// TestFrameTimesAllocate checks that tracing does not allocate in the steady state.
func TestFrameTimesAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	r, p, s := tracedStage(t, nil)
	receiver := r.engine.NewReceiver(&nullPeer{flushes: new(int)}, 0)
	receiver.AddSlot(nullOutlet{2000}, volumetric.KindVideo).Select(p.track, 1, r.now)
	receiver.TraceFrames(true)
	s.receiver.Close()
	template := p.Packets(1144)
	var taken []FrameTimes
	frame := func() {
		p.Next()
		p.restamp(template[0])
		p.ingress.RTP(p.SSRC, template[0], forwardtest.InfoAt(r.now))
		p.ingress.Flush()
		r.run()
		r.now = r.now.Add(5 * time.Millisecond)
		taken = receiver.TakeFrameTimes(taken[:0])
	}
	for range 2000 {
		frame()
	}
	if n := testing.AllocsPerRun(500, frame); n > 0.5 {
		t.Errorf("%g allocations per frame, expected none", n)
	}
}

// TestStampsAreShared checks that five receivers of a writer together request a hundred stamps per second, each one in
// 50 ms.
func TestStampsAreShared(t *testing.T) {
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	var peers []*stampedPeer
	for n := range uint32(5) {
		peer := &stampedPeer{fakePeer: &fakePeer{}}
		receiver := r.engine.NewReceiver(peer, time.Hour)
		slot := receiver.AddSlot(newFakeOutlet(peer.fakePeer, 1000+n), volumetric.KindVideo)
		slot.Select(p.track, 1, r.now)
		receiver.TraceFrames(true)
		peers = append(peers, peer)
	}
	r.run()
	for range 10 {
		p.Next()
		p.Send(r.now, p.Packets(1000)...)
		r.run()
		r.now = r.now.Add(20 * time.Millisecond)
	}
	for n, peer := range peers {
		// Every third of the frames every 20 ms, beginning with the first.
		if peer.asked != 4 {
			t.Errorf("receiver %d: %d stamps were asked for, expected 4", n, peer.asked)
		}
	}
}
