package egress

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/race"
)

// subscribeAll adds receivers with one slot each that follow the track.
func (r *rig) subscribeAll(n int, p *publisher) []*subscriber {
	var all []*subscriber
	for k := range n {
		s := r.subscribe(uint32(1000+10*k), volumetric.KindVideo)
		s.slot.Select(p.track, 1, r.now)
		all = append(all, s)
	}
	r.run()
	return all
}

func TestBurstLeavesAsOneRunPerReceiver(t *testing.T) {
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	subscribers := r.subscribeAll(10, p)
	for _, test := range []struct {
		packets int
		runs    []int
	}{{1, []int{1}}, {40, []int{40}}, {43, []int{43}}, {100, []int{43, 43, 14}}} {
		p.Next()
		p.Send(r.now, p.Packets(test.packets*1144)...)
		r.run()
		for n, s := range subscribers {
			if runs := s.peer.takeRuns(); !slices.Equal(runs, test.runs) {
				t.Errorf("%d packets left receiver %d in runs of %v, expected %v", test.packets, n, runs, test.runs)
			}
		}
		r.now = r.now.Add(frameInterval)
	}
	for _, s := range subscribers {
		checkContinuous(t, s.outlet.sent())
	}
	w := r.engine.writers[0]
	if len(w.outbox.unsent) != 0 || len(w.outbox.arrived) != 0 {
		t.Errorf("%d receivers and %d packets stay unsent", len(w.outbox.unsent), len(w.outbox.arrived))
	}
	r.pass(HousekeepingInterval)
	if h := r.engine.Stats().Residence; h.Count() != 10*184 {
		t.Errorf("residence of %d packets was observed, expected 184 for each of 10 receivers", h.Count())
	}
}

// signalAfter is the number of packets after which an ingress signals, even if the batch continues.
const signalAfter = 64

// TestPacketsWaitForTheirBatch checks that the reader signals whole batches, and long batches in parts.
func TestPacketsWaitForTheirBatch(t *testing.T) {
	r := newRig(t, nil)
	one, two := r.ingress(&fakePeer{}), r.ingress(&fakePeer{})
	p := r.publish(one, 10, volumetric.MIMEVolumetric)
	s := r.subscribeAll(1, p)[0]
	expect := func(when string, n int) {
		t.Helper()
		r.run()
		if got := len(s.outlet.sent()); got != n {
			t.Errorf("%s: %d packets were sent, expected %d", when, got, n)
		}
	}
	p.Next()
	packets := p.Packets((signalAfter + 11) * 1144)
	for _, packet := range packets[:signalAfter-1] {
		one.RTP(p.SSRC, packet, forwardtest.InfoAt(r.now))
	}
	expect("before the end of the batch", 0)
	one.RTP(p.SSRC, packets[signalAfter-1], forwardtest.InfoAt(r.now))
	expect("after as many packets as may wait", signalAfter)
	one.RTP(p.SSRC, packets[signalAfter], forwardtest.InfoAt(r.now))
	expect("one more", signalAfter)
	one.Flush()
	expect("at the end of the batch", signalAfter+1)
	one.Flush()

	// A track that moves to another connection within a batch keeps no signal of the former one.
	for _, packet := range packets[signalAfter+1:] {
		one.RTP(p.SSRC, packet, forwardtest.InfoAt(r.now))
	}
	two.Bind(10, 11, p.track)
	one.Flush()
	expect("moved in the midst of a batch", len(packets))
	p.moveTo(two)
	p.Next()
	p.Send(r.now, p.Packets(1000)...)
	expect("on the other connection", len(packets)+1)
	p.Next()
	two.RTP(p.SSRC, p.Packets(1000)[0], forwardtest.InfoAt(r.now))
	two.Close()
	expect("closed in the midst of a batch", len(packets)+2)
}

// TestABatchOfSeveralPublishers lets packets of two publishers arrive together. The reader that flushes the packets of
// the first also finds the packets of the second, so that they leave as one run.
func TestABatchOfSeveralPublishers(t *testing.T) {
	for _, signalled := range []bool{true, false} {
		r := newRig(t, func(c *rigConfig) { c.Pacing = "off" })
		one, two := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric),
			r.publish(r.ingress(&fakePeer{}), 20, volumetric.MIMEVolumetric)
		peer := &fakePeer{}
		receiver := r.engine.NewReceiver(peer, time.Hour)
		receiver.AddSlot(newFakeOutlet(peer, 1000), volumetric.KindVideo).Select(one.track, 1, r.now)
		receiver.AddSlot(newFakeOutlet(peer, 1010), volumetric.KindVideo).Select(two.track, 2, r.now)
		r.run()
		r.engine.writers[0].turn.Release()
		for _, p := range []*publisher{one, two} {
			p.Next()
			for _, packet := range p.Packets(3 * 1144) {
				p.ingress.RTP(p.SSRC, packet, forwardtest.InfoAt(r.now))
			}
		}
		expected := []int{3, 3}
		if signalled {
			one.ingress.Signal()
			two.ingress.Signal()
			expected = []int{6}
		}
		one.ingress.Flush()
		two.ingress.Flush()
		if runs := peer.takeRuns(); !slices.Equal(runs, expected) {
			t.Errorf("signalled %t: runs of %v packets, expected %v", signalled, runs, expected)
		}
	}
}

// TestClosedReceiverIsNotUnsent closes a receiver with queued packets.
func TestClosedReceiverIsNotUnsent(t *testing.T) {
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	subscribers := r.subscribeAll(3, p)
	p.Next()
	p.Send(r.now, p.Packets(20*1144)...)
	r.run()
	r.now = r.now.Add(20 * time.Millisecond)
	w := r.engine.writers[0]
	for _, s := range subscribers {
		s.peer.takeRuns()
		s.nack(t, r.now, s.outlet.sent()[3].SequenceNumber)
	}
	w.read()
	w.drainInbox()
	if len(w.outbox.unsent) != 3 {
		t.Fatalf("%d receivers are unsent, expected 3", len(w.outbox.unsent))
	}
	subscribers[0].receiver.Close()
	r.run()
	if len(w.outbox.unsent) != 0 || slices.Contains(w.receivers, subscribers[0].receiver) {
		t.Errorf("%d receivers are unsent, expected none", len(w.outbox.unsent))
	}
	for n, s := range subscribers[1:] {
		if runs := s.peer.takeRuns(); !slices.Equal(runs, []int{1}) {
			t.Errorf("receiver %d got runs of %v, expected one of its retransmission", n+1, runs)
		}
	}
	if n := len(subscribers[0].peer.queued); n != 0 {
		t.Errorf("%d packets stay queued for the closed receiver", n)
	}
}

// TestRefusedPackets uses an outlet that refuses packets, like an outlet that has sealed a number before. Each refused
// packet is counted and not queued again.
func TestRefusedPackets(t *testing.T) {
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribeAll(1, p)[0]
	p.Next()
	p.Send(r.now, p.Packets(4*1144)...)
	r.run()
	s.outlet.refuse = errors.New("refused")
	p.Next()
	p.Send(r.now, p.Packets(10*1144)...)
	r.run()
	r.now = r.now.Add(20 * time.Millisecond)
	s.nack(t, r.now, s.outlet.sent()[0].SequenceNumber)
	r.pass(time.Second)
	if s.outlet.refused != 11 {
		t.Errorf("%d packets were tried, expected 10 and a retransmission", s.outlet.refused)
	}
	stats := r.engine.Stats()
	if stats.WriteErrors != 11 || stats.NACKed != (counters.NACKOutcome{Refused: 1}) || stats.Sent.Media.Packets != 4 {
		t.Errorf("counted %d errors, %+v, %d sent, expected 11, one refused, 4", stats.WriteErrors, stats.NACKed,
			stats.Sent.Media.Packets)
	}
	if n := len(r.engine.writers[0].outbox.unsent); n != 0 {
		t.Errorf("%d receivers stay unsent", n)
	}
	s.outlet.refuse = nil
	s.nack(t, r.now, s.outlet.sent()[1].SequenceNumber)
	p.Next()
	p.Send(r.now, p.Packets(1144)...)
	r.run()
	if sent, repaired := len(s.outlet.sent()), s.outlet.repaired(); sent != 5 || len(repaired) > 1 ||
		len(repaired) == 1 && repaired[0].SequenceNumber == 0 {
		t.Errorf("%d packets were sent, and %d retransmissions, expected 5, and numbers that are not used again", sent,
			len(repaired))
	}
}

func TestForwardingDoesNotAllocate(t *testing.T) {
	t.Run("plain", func(t *testing.T) { testForwardingDoesNotAllocate(t, 0) })
	t.Run("numbered", func(t *testing.T) { testForwardingDoesNotAllocate(t, testExtension) })
}

// testForwardingDoesNotAllocate forwards packets between peers that have agreed on transport-wide numbers, unless the
// identifier is 0. The publisher receives feedback; the receivers send none.
func testForwardingDoesNotAllocate(t *testing.T, extension uint8) {
	if race.Enabled {
		t.Skip("a sync.Pool drops packets at random under the race detector")
	}
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{extension: extension})
	p := r.publish(i, 10, volumetric.MIMEOpaque)
	p.Extension = extension
	flushes := 0
	for n := range 10 {
		receiver := r.engine.NewReceiver(&nullPeer{fakePeer: fakePeer{extension: extension}, flushes: &flushes}, 0)
		receiver.AddSlot(nullOutlet{uint32(1000 + 10*n)}, volumetric.KindVideo).Select(p.track, 1, r.now)
	}
	r.run()
	body := make([]byte, 1000)
	template := p.Packet(body, true)
	number := p.Sequence
	burst := func() {
		for range 16 {
			number++
			template[2], template[3] = byte(number>>8), byte(number)
			if extension != 0 {
				template[17], template[18] = byte(number>>8), byte(number)
			}
			r.now = r.now.Add(10 * time.Microsecond)
			i.RTP(p.SSRC, template, forwardtest.InfoAt(r.now))
		}
		r.now = r.now.Add(time.Millisecond)
		i.Flush()
		r.run()
		i.Step(r.now)
	}
	// The cache is full after a second: 16 packets every 1.16 ms. After 2,048 bursts the number of packets that wait
	// for a report has reached its maximum.
	for range 2100 {
		burst()
	}
	before := flushes
	// The pool now and then loses packets to the garbage collector.
	if n := testing.AllocsPerRun(200, burst); n > 1 {
		t.Errorf("%v allocations per 16 packets to 10 receivers, expected none", n)
	}
	if n := flushes - before; n != 2010 {
		t.Errorf("%d flushes, expected one for each of 201 bursts to 10 receivers", n)
	}
}
