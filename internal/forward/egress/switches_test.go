package egress

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/race"
)

// newPair returns a rig with two tracks of a publication, and a subscriber whose slot carries the first.
func newPair(t *testing.T) (r *rig, s *subscriber, first, second *publisher) {
	t.Helper()
	r = newRig(t, nil)
	i := r.ingress(&fakePeer{})
	first, second = r.publish(i, 10, volumetric.MIMEVolumetric), r.publish(i, 20, volumetric.MIMEVolumetric)
	s = r.subscribe(1000, volumetric.KindVideo)
	s.slot.Select(first.track, 1, r.now)
	r.run()
	return r, s, first, second
}

// TestSwitchesUnderLoss switches at random between three qualities while packets are lost and repaired late, also after
// the switch away from their track. The packets of the slot must have no gap, no repeat, and only whole frames.
func TestSwitchesUnderLoss(t *testing.T) {
	race.SkipSequential(t)
	random := rand.New(rand.NewPCG(1, 2))
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{})
	var qualities []*publisher
	for q := range 3 {
		p := r.publish(i, uint32(10+2*q), volumetric.MIMEVolumetric)
		qualities = append(qualities, p)
	}
	s := r.subscribe(1000, volumetric.KindVideo)
	type owed struct {
		p      *publisher
		packet []byte
		at     time.Time
	}
	var late []owed
	repair := func(all bool) {
		kept := late[:0]
		for _, o := range late {
			if all || !r.now.Before(o.at) {
				o.p.Repair(r.now, o.packet)
			} else {
				kept = append(kept, o)
			}
		}
		late = kept
	}
	selected, switches := 0, 0
	for frame := range 400 {
		if frame%3 == 0 {
			selected = random.IntN(3)
			s.slot.Select(qualities[selected].track, 1, r.now)
		}
		for q, p := range qualities {
			p.Next()
			for _, packet := range p.Packets(1500 * (1 + 2*q)) {
				r.now = r.now.Add(200 * time.Microsecond)
				if random.IntN(20) == 0 {
					late = append(late, owed{p, packet, r.now.Add(time.Duration(random.IntN(120)) * time.Millisecond)})
				} else {
					p.Send(r.now, packet)
				}
				repair(false)
				if random.IntN(4) == 0 {
					r.run()
				}
			}
		}
		r.now = r.now.Add(20 * time.Millisecond)
		r.run()
		switches += len(s.switches())
	}
	r.pass(30 * time.Millisecond)
	repair(true)
	r.run()
	got := s.outlet.sent()
	checkContinuous(t, got)
	if switches < 50 {
		t.Errorf("switched %d times, expected at least 50", switches)
	}
	whole := 0
	for frame, count := range frames(t, got) {
		var expected int
		for _, packet := range got {
			if d := descriptorOf(t, packet); d.Frame == frame {
				expected = d.Packets()
			}
		}
		if count != expected {
			t.Errorf("frame %d went out in %d packets, expected %d", frame, count, expected)
		}
		whole++
	}
	if whole < 395 {
		t.Errorf("%d of 400 frames went out", whole)
	}
	if stats := r.engine.Stats(); stats.DroppedLate != 0 || stats.DroppedOverrun != 0 || stats.Duplicates != 0 {
		t.Errorf("dropped %d late, %d overrun, %d duplicates, expected none", stats.DroppedLate, stats.DroppedOverrun,
			stats.Duplicates)
	}
}

func TestOffAtTheFrameBoundary(t *testing.T) {
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.slot.Select(p.track, 1, r.now)
	r.run()
	p.Next()
	packets := p.Packets(4000)
	p.Send(r.now, packets[:2]...)
	r.run()
	s.slot.Select(nil, 0, r.now)
	r.run()
	p.Send(r.now, packets[2:]...)
	p.Next()
	p.Send(r.now, p.Packets(4000)...)
	r.run()
	if got := s.outlet.sent(); len(got) != 4 {
		t.Fatalf("%d packets were sent, expected the 4 of the frame under way", len(got))
	}
	r.pass(time.Second)
	if n := len(r.engine.writers[0].followers); n != 0 {
		t.Errorf("the writer follows %d tracks, expected none once the late window is over", n)
	}
	if n := p.track.Followers(); n != 0 {
		t.Errorf("the track signals %d followers, expected none", n)
	}
	s.slot.Select(p.track, 1, r.now)
	r.run()
	p.Next()
	p.Send(r.now, p.Packets(4000)...)
	r.run()
	got := s.outlet.sent()
	if len(got) != 8 {
		t.Fatalf("%d packets were sent, expected 8", len(got))
	}
	checkContinuous(t, got)
}

// TestBeginsAtTheNewestFrame selects a track between two of its frames. The slot begins with the frame in the cache,
// not with the next one.
func TestBeginsAtTheNewestFrame(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{})
	low, high := r.publish(i, 10, volumetric.MIMEVolumetric), r.publish(i, 20, volumetric.MIMEVolumetric)
	s, other := r.subscribe(1000, volumetric.KindVideo), r.subscribe(2000, volumetric.KindVideo)
	other.slot.Select(high.track, 1, r.now)
	r.run()
	for range 3 {
		r.now = r.now.Add(frameInterval)
		low.Next()
		high.Next()
		low.Send(r.now, low.Packets(1000)...)
		high.Send(r.now, high.Packets(4000)...)
		r.run()
	}
	r.now = r.now.Add(10 * time.Millisecond)
	s.slot.Select(high.track, 1, r.now)
	r.run()
	if got := s.outlet.sent(); len(got) != 4 || descriptorOf(t, got[0]).Frame != 3 {
		t.Fatalf("%d packets were sent, expected the 4 of frame 3", len(got))
	}
	// A new follower does not read packets that arrived long before.
	r.pass(200 * time.Millisecond)
	third := r.subscribe(3000, volumetric.KindVideo)
	third.slot.Select(low.track, 1, r.now)
	r.run()
	if n := len(third.outlet.sent()); n != 0 {
		t.Fatalf("%d packets were sent of frames that are 200 ms old", n)
	}
	// An old frame is not sent again.
	s.slot.Select(nil, 0, r.now)
	r.pass(time.Second / 2)
	s.slot.Select(low.track, 1, r.now)
	r.run()
	if got := s.outlet.sent(); len(got) != 4 {
		t.Fatalf("%d packets were sent, expected nothing of a frame half a second old", len(got))
	}
}

// TestRelaysBeginAfterAMove selects a track for a relay soon and long after its publisher has moved: the relay begins
// with the first frame since the move as long as the cache has it, and later with the newest.
func TestRelaysBeginAfterAMove(t *testing.T) {
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	other := r.subscribe(1000, volumetric.KindVideo)
	other.slot.Select(p.track, 1, r.now)
	r.run()
	frames := func(n int) {
		for range n {
			r.now = r.now.Add(frameInterval)
			p.Next()
			p.Send(r.now, p.Packets(2000)...)
			r.run()
		}
	}
	begins := func(ssrc uint32) uint32 {
		t.Helper()
		peer := &fakePeer{}
		s := &subscriber{peer: peer, outlet: newFakeOutlet(peer, ssrc)}
		s.receiver = r.engine.NewRelay(peer, congestion.Limits{})
		s.slot = s.receiver.AddSlot(s.outlet, volumetric.KindVideo)
		s.slot.Select(p.track, 1, r.now)
		r.run()
		got := s.outlet.sent()
		if len(got) == 0 {
			t.Fatal("no packet was sent")
		}
		return descriptorOf(t, got[0]).Frame
	}
	frames(3)
	p.track.TakeOver()
	frames(10)
	if got := begins(2000); got != 4 {
		t.Errorf("soon after the move the relay begins with frame %d, expected 4", got)
	}
	frames(60)
	if got := begins(3000); got != 73 {
		t.Errorf("long after the move the relay begins with frame %d, expected the newest, 73", got)
	}
}

// TestRelaysBeginWithTheKeyFrameOfAMove selects a track whose frames depend on each other after its publisher has
// moved. The relay begins with the key frame of the publisher's next connection, and asks for no other.
func TestRelaysBeginWithTheKeyFrameOfAMove(t *testing.T) {
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVP8)
	other := r.subscribe(1000, volumetric.KindVideo)
	other.slot.Select(p.track, 1, r.now)
	r.run()
	send := func(body []byte) {
		r.now = r.now.Add(frameInterval)
		p.Next()
		p.Send(r.now, p.Packet(body, true))
		r.run()
	}
	delta := []byte{0x10, 0x11, 0x02, 0x00}
	send(vp8Key)
	p.track.TakeOver()
	send(vp8Key)
	for range 5 {
		send(delta)
	}
	if p.track.KeyFrameWanted() {
		t.Fatal("a key frame is wanted before the relay")
	}
	peer := &fakePeer{}
	outlet := newFakeOutlet(peer, 2000)
	slot := r.engine.NewRelay(peer, congestion.Limits{}).AddSlot(outlet, volumetric.KindVideo)
	slot.Select(p.track, 1, r.now)
	r.run()
	got := outlet.sent()
	if len(got) != 6 || !bytes.Equal(got[0].Payload, vp8Key) {
		t.Errorf("%d packets were sent, expected the key frame and 5 frames", len(got))
	}
	if p.track.KeyFrameWanted() {
		t.Error("another key frame is wanted")
	}
}

// TestKeepsTheOrderOfArrival fills two logs before the writer runs. The switch must happen after the frame of the first
// track that arrived before.
func TestKeepsTheOrderOfArrival(t *testing.T) {
	r, s, a, b := newPair(t)
	a.Next()
	b.Next()
	a.Send(r.now, a.Packets(4000)...)
	r.run()
	s.slot.Select(b.track, 1, r.now)
	r.run()
	for range 4 {
		a.Next()
		b.Next()
		r.now = r.now.Add(time.Millisecond)
		for _, packet := range a.Packets(4000) {
			a.Send(r.now, packet)
		}
		for _, packet := range b.Packets(2000) {
			b.Send(r.now, packet)
		}
	}
	r.run()
	got := s.outlet.sent()
	checkContinuous(t, got)
	last := uint32(0)
	for i, packet := range got {
		if i > 0 && packet.SequenceNumber != got[i-1].SequenceNumber+1 {
			t.Fatalf("number %d follows %d: packets are out of order", packet.SequenceNumber, got[i-1].SequenceNumber)
		}
		last = max(last, descriptorOf(t, packet).Frame)
	}
	// The second track's frame 2 shows that the track is live, so frame 3 is left to the second track. Its frames have
	// 2 packets.
	f := frames(t, got)
	if len(f) != 5 || last != 5 || f[2] != 4 || f[3] != 2 || f[5] != 2 {
		t.Errorf("packets by frame are %v, expected 4 of frames 1 and 2, and 2 of frames 3 to 5", f)
	}
}

// TestSwitchWithinABurst selects another quality while a burst of frames waits for the writer. The slot carries every
// frame, at the former quality or at the new one.
func TestSwitchWithinABurst(t *testing.T) {
	r, s, high, low := newPair(t)
	send := func() {
		r.now = r.now.Add(time.Millisecond)
		high.Next()
		low.Next()
		high.Send(r.now, high.Packets(4000)...)
		low.Send(r.now, low.Packets(1000)...)
	}
	for range 3 {
		send()
		r.run()
	}
	for range 5 {
		send()
	}
	s.slot.Select(low.track, 1, r.now)
	r.run()
	for range 3 {
		send()
		r.run()
	}
	got := s.outlet.sent()
	checkContinuous(t, got)
	// Frame 9 shows that the selected track is live, so frame 10 is left to the selected track.
	f, want := frames(t, got), map[uint32]int{10: 1, 11: 1}
	for frame := uint32(1); frame <= 9; frame++ {
		want[frame] = 4
	}
	if !maps.Equal(f, want) {
		t.Errorf("packets by frame are %v, expected %v", f, want)
	}
	if told := s.switches(); len(told) != 2 || told[1] != low.track {
		t.Errorf("switched to %v, expected two switches", told)
	}
}

// TestFramesLeftToAPendingTrack selects a track that is live and then falls silent. The active track leaves its frames
// to the selected track for 100 ms. These frames are reported as dropped.
func TestFramesLeftToAPendingTrack(t *testing.T) {
	r, s, high, low := newPair(t)
	for n := 1; n <= 9; n++ {
		r.now = r.now.Add(frameInterval)
		high.Next()
		low.Next()
		high.Send(r.now, high.Packets(4000)...)
		if n <= 3 {
			low.Send(r.now, low.Packets(1000)...)
		}
		r.run()
		if n == 3 {
			s.slot.Select(low.track, 1, r.now)
			r.run()
		}
	}
	got := s.outlet.sent()
	checkContinuous(t, got)
	if f, want := frames(t, got), (map[uint32]int{1: 4, 2: 4, 3: 4, 8: 4, 9: 4}); !maps.Equal(f, want) {
		t.Errorf("packets by frame are %v, expected %v", f, want)
	}
	told := s.dropped()
	if stats := r.engine.Stats(); stats.DroppedIncomplete != 4 || len(told) != 1 || told[DroppedIncomplete] != 4 {
		t.Errorf("%d frames counted as dropped, %v told, expected 4", stats.DroppedIncomplete, told)
	}
}

// TestDroppedFramesOfAPendingTrack drops two frames of both tracks before the selected track begins, because the host
// cannot send them. They have no numbers on the slot, which the receiver would request.
func TestDroppedFramesOfAPendingTrack(t *testing.T) {
	r, s, high, low := newPair(t)
	for n := 1; n <= 7; n++ {
		r.now = r.now.Add(frameInterval)
		s.peer.block(n == 4 || n == 5)
		high.Next()
		low.Next()
		high.Send(r.now, high.Packets(4000)...)
		low.Send(r.now, low.Packets(1000)...)
		r.run()
		if n == 3 {
			s.slot.Select(low.track, 1, r.now)
			r.run()
		}
	}
	got := s.outlet.sent()
	checkContinuous(t, got)
	if f, want := frames(t, got), (map[uint32]int{1: 4, 2: 4, 3: 4, 6: 1, 7: 1}); !maps.Equal(f, want) {
		t.Errorf("packets by frame are %v, expected %v", f, want)
	}
	if told := s.dropped(); len(told) != 1 || told[DroppedBlocked] != 2 {
		t.Errorf("dropped frames are %v, expected 2 that were blocked", told)
	}
}

// TestSelectingTheActiveTrack cancels a pending switch.
func TestSelectingTheActiveTrack(t *testing.T) {
	r, s, a, b := newPair(t)
	for n := range 5 {
		r.now = r.now.Add(frameInterval)
		a.Next()
		b.Next()
		a.Send(r.now, a.Packets(1000)...)
		if n > 2 {
			b.Send(r.now, b.Packets(1000)...)
		}
		r.run()
		if n == 1 {
			s.slot.Select(b.track, 1, r.now)
			r.run()
		}
		if n == 2 {
			s.slot.Select(a.track, 1, r.now)
			r.run()
		}
	}
	if told := s.switches(); len(told) != 2 || told[0] != a.track || told[1] != a.track ||
		r.engine.Stats().Switches != 1 {
		t.Errorf("told %d times, expected when the track began and when the change was cancelled", len(told))
	}
	if n := len(s.outlet.sent()); n != 5 {
		t.Errorf("%d packets were sent, expected 5", n)
	}
	if n := len(s.slot.attachments); n != 1 {
		t.Errorf("%d tracks reach the slot, expected 1", n)
	}
}

// TestAFrameFromBeforeAPauseIsNoSignOfLife selects a track soon after a pause. The other track continues until new
// frames of the selected track arrive.
func TestAFrameFromBeforeAPauseIsNoSignOfLife(t *testing.T) {
	for _, expected := range []bool{false, true} {
		r, s, high, low := newPair(t)
		for n := range 6 {
			r.now = r.now.Add(frameInterval)
			low.Next()
			high.Next()
			if n < 2 || n > 3 {
				high.Send(r.now, high.Packets(4000)...)
			}
			low.Send(r.now, low.Packets(1000)...)
			r.run()
			switch n {
			case 1:
				s.slot.Select(low.track, 1, r.now)
			case 2:
				// The publisher has paused the track, and is told to resume while a frame is on its way.
				if expected {
					high.track.Expect()
				}
				s.slot.Select(high.track, 1, r.now)
			}
			r.run()
		}
		got := s.outlet.sent()
		checkContinuous(t, got)
		// If the pause is unknown, the frame in the cache, 33 ms old, makes the slot wait for the track's frame 4,
		// which does not arrive.
		f, want := frames(t, got), map[uint32]int{1: 4, 2: 4, 3: 1, 4: 1, 5: 4, 6: 4}
		if !expected {
			delete(want, 4)
		}
		if !maps.Equal(f, want) {
			t.Errorf("expected %v: packets by frame are %v, expected %v", expected, f, want)
		}
		if expected && len(s.switches()) != 3 {
			t.Error("expected three switches")
		}
	}
}

// TestFramesUnderWayAtAPauseAreNotBegunWith selects a track whose publisher, 40 ms away, was told to pause the track 10
// ms before. Frames in flight at that time still arrive; frames until the publisher is told to resume do not. The other
// track continues until that time is over.
func TestFramesUnderWayAtAPauseAreNotBegunWith(t *testing.T) {
	const rtt = 40 * time.Millisecond
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{rtt: rtt})
	low, high := r.publish(i, 10, volumetric.MIMEVolumetric), r.publish(i, 20, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.slot.Select(low.track, 1, r.now)
	r.run()
	begin := r.now
	paused, resumed := begin.Add(105*time.Millisecond), begin.Add(115*time.Millisecond)
	for n := 1; n <= 9; n++ {
		sent := begin.Add(time.Duration(n)*25*time.Millisecond - rtt/2)
		come := sent.Add(rtt / 2)
		for _, event := range []struct {
			at time.Time
			do func()
		}{
			{paused, high.track.Pause},
			{resumed, func() { high.track.Expect(); s.slot.Select(high.track, 1, r.now) }},
		} {
			if event.at.After(r.now) && !event.at.After(come) {
				r.now = event.at
				event.do()
				r.run()
			}
		}
		r.now = come
		low.Next()
		high.Next()
		// The server's messages reach the publisher half a round trip later.
		if sent.Before(paused.Add(rtt/2)) || !sent.Before(resumed.Add(rtt/2)) {
			high.Send(r.now, high.Packets(4000)...)
		}
		low.Send(r.now, low.Packets(1000)...)
		r.run()
	}
	got := s.outlet.sent()
	checkContinuous(t, got)
	// The fifth frame arrived after the selection and was sent before the pause, the sixth is not sent.
	if f, want := frames(t, got), map[uint32]int{1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 4, 8: 4, 9: 4}; !maps.Equal(f,
		want) {
		t.Errorf("packets by frame are %v, expected %v", f, want)
	}
}

// TestFramesOfAPause switches a slot off and on again. The receiver is informed of the frames that the slot did not
// carry meanwhile, and not of dropped frames.
func TestFramesOfAPause(t *testing.T) {
	r, s, high, low := newPair(t)
	frame := func() {
		for _, p := range []*publisher{high, low} {
			p.Next()
			p.Send(r.now, p.Packets(3000)...)
		}
		r.run()
		r.pass(frameInterval)
	}
	for range 3 {
		frame()
	}
	s.slot.Select(nil, 0, r.now)
	for range 4 {
		frame()
	}
	s.slot.Select(low.track, 1, r.now)
	frame()
	s.slot.Select(high.track, 1, r.now)
	frame()
	var off []FrameRange
	for _, e := range s.receiver.TakeEvents(nil) {
		if e.Switched {
			off = append(off, e.OffFrames)
		}
		if e.DroppedFrames > 0 {
			t.Errorf("%d frames are told as dropped (%v), expected none", e.DroppedFrames, e.Dropped)
		}
	}
	if want := []FrameRange{{}, {First: 4, Count: 4}, {}}; !slices.Equal(off, want) {
		t.Errorf("frames of pauses are %+v, expected %+v", off, want)
	}
}
