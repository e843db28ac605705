package egress

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// giveUp advances the time until an ingress has given up missing packets, and all waiting packets have left.
func (r *rig) giveUp(i *ingress.Ingress) {
	end := r.now.Add(feedback.DefaultConfig().NACK.Deadline + 50*time.Millisecond)
	for ; r.now.Before(end); r.now = r.now.Add(5 * time.Millisecond) {
		step(i, r.now)
		r.run()
	}
}

// protect sets the share of parity that a receiver is sent.
func (s *subscriber) protect(share float64) { s.slot.switcher.SetParity(share) }

// ended returns the numbers of ended and of dropped frames in the events since the last call, by reason.
func (s *subscriber) ended() (ended, dropped map[DropReason]int) {
	ended, dropped = make(map[DropReason]int), make(map[DropReason]int)
	for _, e := range s.receiver.TakeEvents(nil) {
		if e.EndedFrames > 0 {
			ended[e.Dropped] += e.EndedFrames
		}
		if e.DroppedFrames > 0 {
			dropped[e.Dropped] += e.DroppedFrames
		}
	}
	return ended, dropped
}

// TestFramesThatMissPacketsAreEnded loses three packets of a frame of 10 source and 4 parity packets until they are
// given up. Only a receiver that is sent three parity packets can complete the frame. That receiver is sent the lost
// packet that arrives late, and the retransmissions that it requests.
func TestFramesThatMissPacketsAreEnded(t *testing.T) {
	for _, mode := range []pacing.Mode{pacing.Off, pacing.Default} {
		for _, newer := range []bool{false, true} {
			r := newPacedRig(t, mode, nil)
			i := r.ingress(&fakePeer{})
			p := r.publish(i, 10, volumetric.MIMEVolumetric)
			p.Parity = 4
			subscribers := r.subscribeAll(3, p)
			subscribers[1].protect(0.1)
			subscribers[2].protect(0.3)
			p.Next()
			packets := p.Packets(10 * 1144)
			late := packets[9]
			p.Send(r.now, slices.Concat(packets[:3], packets[5:9], packets[10:])...)
			r.ticks(frameInterval)
			if newer {
				p.Next()
				p.Send(r.now, p.Packets(2*1144)...)
			}
			r.giveUp(i)
			p.Send(r.now, late)
			r.ticks(frameInterval)
			for _, s := range subscribers {
				s.nack(t, r.now, s.outlet.sent()[1].SequenceNumber)
			}
			r.run()
			p.Next()
			p.Send(r.now, p.Packets(3*1144)...)
			r.ticks(frameInterval)
			for n, s := range subscribers {
				// Of the first frame: the packets in time, the late packet if it can be completed, and the parity that
				// is sent.
				want, repairs, endings := 7+n, 0, 1
				if n == 2 {
					want, repairs, endings = 11, 1, 0
				}
				sent := s.outlet.sent()
				if f := frames(t, sent); f[1] != want {
					t.Errorf("%s, newer %t: receiver %d was sent %d packets of the frame, expected %d", mode, newer, n,
						f[1], want)
				}
				if got := len(s.outlet.repaired()); got != repairs {
					t.Errorf("%s, newer %t: receiver %d was sent %d packets again, expected %d", mode, newer, n, got,
						repairs)
				}
				if ended, dropped := s.ended(); ended[DroppedIncomplete] != endings || len(dropped) > 0 {
					t.Errorf("%s, newer %t: receiver %d has events of %v ended and %v dropped, expected %d ended",
						mode, newer, n, ended, dropped, endings)
				}
				// The packets that never arrived are 3 and 4. Numbers reserved above the highest number sent are
				// returned unless a newer packet has one of them.
				last := sent[len(sent)-1]
				holes := int(last.SequenceNumber-sent[0].SequenceNumber) + 1 - len(sent)
				want = 2
				if n < 2 && newer || n == 1 {
					want = 3
				}
				if holes != want {
					t.Errorf("%s, newer %t: the numbers of receiver %d have %d holes, expected %d", mode, newer, n,
						holes, want)
				}
			}
			stats := r.engine.Stats()
			if stats.DroppedIncomplete != 2 || stats.Lost != 3 || stats.NACKed != (counters.NACKOutcome{Answered: 1,
				Expired: 2}) {
				t.Errorf("%s, newer %t: %d frames are counted as incomplete, %d packets as lost, requests as %+v", mode,
					newer, stats.DroppedIncomplete, stats.Lost, stats.NACKed)
			}
			checkReferences(t, []*publisher{p})
		}
	}
}

// TestWaitingPacketsOfAnIncompleteFrameAreReleased gives up a packet while most of its frame, and all of the next
// frame, wait for a slow receiver. The next frame lacks a packet, too: it is dropped as a whole, and the receiver is
// informed.
func TestWaitingPacketsOfAnIncompleteFrameAreReleased(t *testing.T) {
	r := newPacedRig(t, pacing.Default, func(c *rigConfig) { c.QueueBudget = time.Hour })
	i := r.ingress(&fakePeer{})
	p := r.publish(i, 10, volumetric.MIMEVolumetric)
	s := r.subscribeAll(1, p)[0]
	r.begin(p)
	r.limit(s, 1000)
	for range 2 {
		p.Next()
		packets := p.Packets(20 * 1144)
		p.Send(r.now, slices.Concat(packets[:10], packets[11:])...)
		r.ticks(time.Millisecond)
	}
	p.Next()
	p.Send(r.now, p.Packets(3*1144)...)
	r.giveUp(i)
	if ended, dropped := s.ended(); ended[DroppedIncomplete] != 1 || len(dropped) > 0 {
		t.Errorf("%v frames are told as ended and %v as dropped, expected the first one ended", ended, dropped)
	}
	left := len(s.outlet.sent())
	if held := s.slot.held.Len(); left > 12 || held != 19+3 {
		t.Errorf("%d packets have left and %d wait, expected 22 to wait of the two frames that have not begun", left,
			held)
	}
	r.limit(s, 0)
	r.ticks(time.Second)
	sent := s.outlet.sent()
	checkContinuous(t, sent)
	if f := frames(t, sent); f[4] != 0 || f[5] != 3 || len(sent) != left+3 {
		t.Errorf("packets by frame are %v after %d packets, expected none of frame 4 and 3 of frame 5", f, left)
	}
	if ended, dropped := s.ended(); dropped[DroppedIncomplete] != 1 || len(ended) > 0 {
		t.Errorf("%v frames are told as dropped and %v as ended, expected one dropped", dropped, ended)
	}
	checkReferences(t, []*publisher{p})
}

// TestPaddingIsMadeOfEndedFrames checks that packets of an ended frame are not retransmitted on request, but may fill a
// probe.
func TestPaddingIsMadeOfEndedFrames(t *testing.T) {
	r := newPacedRig(t, pacing.Off, nil)
	i := r.ingress(&fakePeer{})
	p := r.publish(i, 10, volumetric.MIMEVolumetric)
	s := r.subscribeAll(1, p)[0]
	p.Next()
	packets := p.Packets(3 * 1144)
	p.Send(r.now, packets[0], packets[2])
	r.giveUp(i)
	if ended, _ := s.ended(); ended[DroppedIncomplete] != 1 {
		t.Fatalf("frames ended: %v, expected one", ended)
	}
	number := s.outlet.sent()[0].SequenceNumber
	s.nack(t, r.now, number)
	r.run()
	found, _, ok := (repair{slot: s.slot, number: number}).find()
	if !ok {
		t.Fatal("a probe finds nothing to repeat")
	}
	found.Release()
	if got := len(s.outlet.repaired()); got != 0 {
		t.Errorf("%d packets were sent again on request, expected none", got)
	}
}

// TestFramesThatExpireAreEnded delays half of a frame beyond its receiver's deadline. The other half is not sent,
// requests for it are not answered, and the newest frame leaves in its place.
func TestFramesThatExpireAreEnded(t *testing.T) {
	for _, mime := range []string{volumetric.MIMEVolumetric, volumetric.MIMEOpaque, volumetric.MIMEH264} {
		for held, ends := range map[time.Duration]bool{90 * time.Millisecond: false, 110 * time.Millisecond: true} {
			r := newPacedRig(t, "spread:20ms", nil)
			p := r.publish(r.ingress(&fakePeer{}), 10, mime)
			s := r.subscribeAll(1, p)[0]
			s.receiver.path.deadline = 100 * time.Millisecond
			ends := ends && mime != volumetric.MIMEH264
			s.peer.rtt = 60 * time.Millisecond
			p.Next()
			p.Send(r.now, p.Packet([]byte{0x65, 1}, true))
			r.ticks(frameInterval)
			// Frames of other codecs are assumed to be as long as the one before.
			for range 2 {
				p.Next()
				p.Send(r.now, p.Packets(40*1144)...)
				r.ticks(frameInterval)
			}
			before := len(s.outlet.sent())
			p.Next()
			p.Send(r.now, p.Packets(40*1144)...)
			r.ticks(9 * time.Millisecond)
			begun := len(s.outlet.sent()) - before
			r.limit(s, 1000)
			r.ticks(held - 9*time.Millisecond)
			p.Next()
			p.Send(r.now, p.Packets(5*1144)...)
			r.run()
			if begun < 10 || begun > 30 || s.slot.held.Len() < 10 {
				t.Fatalf("%s: %d packets of the frame have left, %d wait", mime, begun, s.slot.held.Len())
			}
			r.limit(s, 0)
			r.ticks(time.Millisecond)
			s.nack(t, r.now, s.outlet.sent()[before+1].SequenceNumber)
			r.ticks(frameInterval)
			sent := s.outlet.sent()
			checkContinuous(t, sent)
			left := len(sent) - before
			if !ends && left != 45 || ends && left > begun+3+5 ||
				sent[len(sent)-1].Timestamp-sent[before].Timestamp != 3000 {
				t.Errorf("%s, after %v: %d packets left of two frames, %d of them before", mime, held, left, begun)
			}
			want := map[DropReason]int{}
			if ends {
				want[DroppedExpired] = 1
			}
			if ended, dropped := s.ended(); !maps.Equal(ended, want) || len(dropped) > 0 {
				t.Errorf("%s, after %v: frames are told as ended %v and as dropped %v, expected %v", mime, held, ended,
					dropped, want)
			}
			asked := counters.NACKOutcome{Answered: 1}
			if ends {
				asked = counters.NACKOutcome{Expired: 1}
			}
			if stats := r.engine.Stats(); int(stats.DroppedExpired) != want[DroppedExpired] || stats.NACKed != asked {
				t.Errorf("%s, after %v: %d frames count as expired, the request came to %+v", mime, held,
					stats.DroppedExpired, stats.NACKed)
			}
			checkReferences(t, []*publisher{p})
		}
	}
}

// TestAQueueProlongsTheDeadline delays packets by a queue that then empties. Packets that wait beyond the deadline by
// no more than that delay are still sent.
func TestAQueueProlongsTheDeadline(t *testing.T) {
	c := newConference(t, 20e6, nil)
	c.receiver.path.deadline = 100 * time.Millisecond
	c.frames(time.Second, 2e6, nil)
	a := c.slot.attachments[0]
	w, p := c.engine.writers[0], &packetlog.Packet{}
	p.Facts.Framed, p.Facts.Frame = true, a.leaving
	for _, late := range []time.Duration{0, 80 * time.Millisecond} {
		rtt, _ := c.receiver.path.trip()
		c.receiver.path.sender.Learn([]feedback.PacketResult{{Sent: w.now.Add(-rtt - late), Received: true,
			Arrived: w.at}}, w.now, w.now)
		_, late = c.receiver.path.trip()
		for _, beyond := range []time.Duration{0, time.Millisecond} {
			a.left = w.at - 100*time.Millisecond - late - beyond
			if _, got := a.abandon(p); got != (beyond > 0) {
				t.Errorf("%v late, %v beyond the deadline: expired is %t", late, beyond, got)
			}
		}
	}
}

// TestBlockedReceivers blocks a receiver's packets on the host for a while. The frame that has begun ends, later frames
// are dropped as a whole, other receivers get everything, and frames continue when there is room.
func TestBlockedReceivers(t *testing.T) {
	for _, mode := range []pacing.Mode{"spread:20ms", "off"} {
		r := newPacedRig(t, mode, nil)
		p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
		s := r.subscribeAll(2, p)
		frame := func() (left int) {
			before := len(s[0].outlet.sent())
			p.Next()
			p.Send(r.now, p.Packets(20*1144)...)
			r.ticks(9 * time.Millisecond)
			return len(s[0].outlet.sent()) - before
		}
		if frame() == 0 {
			t.Fatalf("%s: nothing leaves of the first frame", mode)
		}
		s[0].peer.block(true)
		r.ticks(frameInterval)
		begun := len(s[0].outlet.sent())
		for range 3 {
			if left := frame(); left != 0 {
				t.Errorf("%s: %d packets of a frame leave to a receiver that is blocked", mode, left)
			}
			r.ticks(frameInterval)
		}
		s[0].peer.block(false)
		frame()
		r.ticks(frameInterval)
		want, ends := map[DropReason]int{DroppedBlocked: 3}, map[DropReason]int{}
		if begun < 20 {
			ends[DroppedBlocked] = 1
		}
		if ended, dropped := s[0].ended(); !maps.Equal(ended, ends) || !maps.Equal(dropped, want) {
			t.Errorf("%s: frames are told as ended %v and as dropped %v, expected %v and %v", mode, ended, dropped,
				ends, want)
		}
		if got, all := len(s[0].outlet.sent()), len(s[1].outlet.sent()); got != begun+20 || all != 5*20 {
			t.Errorf("%s: %d and %d packets left, expected %d to the one that was blocked and 100 to the other", mode,
				got, all, begun+20)
		}
		checkContinuous(t, s[0].outlet.sent())
		if stats := r.engine.Stats(); int(stats.DroppedBlocked) != 3+len(ends) {
			t.Errorf("%s: %d frames count as blocked, expected %d", mode, stats.DroppedBlocked, 3+len(ends))
		}
		checkReferences(t, []*publisher{p})
	}
}
