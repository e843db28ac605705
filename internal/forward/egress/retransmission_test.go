package egress

import (
	"bytes"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// checkRepair fails unless the retransmission carries the original packet.
func checkRepair(t *testing.T, repair, original rtp.Packet, payloadType uint8) {
	t.Helper()
	if len(repair.Payload) < 2 || repair.Payload[0] != byte(original.SequenceNumber>>8) ||
		repair.Payload[1] != byte(original.SequenceNumber) {
		t.Fatalf("original number is %x, expected %x", repair.Payload[:2], original.SequenceNumber)
	}
	if !bytes.Equal(repair.Payload[2:], original.Payload) {
		t.Fatalf("retransmission of %d carries another payload", original.SequenceNumber)
	}
	if repair.Timestamp != original.Timestamp || repair.Marker != original.Marker || repair.PayloadType != payloadType {
		t.Fatalf("retransmission has timestamp %d, marker %v, type %d, expected %d, %v, %d", repair.Timestamp,
			repair.Marker, repair.PayloadType,
			original.Timestamp, original.Marker, payloadType)
	}
}

func TestAnswersNACK(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{})
	a, b := r.publish(i, 10, volumetric.MIMEVolumetric), r.publish(i, 20, volumetric.MIMEVolumetric)
	s, other := r.subscribe(1000, volumetric.KindVideo), r.subscribe(2000, volumetric.KindVideo)
	other.slot.Select(a.track, 1, r.now)
	r.run()
	for n, track := range []*publisher{a, b, a, b} {
		s.slot.Select(track.track, 1, r.now)
		r.run()
		r.now = r.now.Add(frameInterval)
		for _, p := range []*publisher{a, b} {
			p.Next()
			p.Send(r.now, p.Packets(4000+n)...)
		}
		r.run()
	}
	sent := s.outlet.sent()
	if len(sent) != 16 {
		t.Fatalf("%d packets were sent, expected 16", len(sent))
	}
	numbers := []uint16{sent[1].SequenceNumber, sent[3].SequenceNumber, sent[4].SequenceNumber, sent[9].SequenceNumber,
		sent[15].SequenceNumber}
	s.nack(t, r.now, numbers...)
	r.run()
	repairs := s.outlet.repaired()
	if len(repairs) != len(numbers) {
		t.Fatalf("%d packets were retransmitted, expected %d", len(repairs), len(numbers))
	}
	for n, index := range []int{1, 3, 4, 9, 15} {
		checkRepair(t, repairs[n], sent[index], 97)
		if n > 0 && repairs[n].SequenceNumber != repairs[n-1].SequenceNumber+1 {
			t.Errorf("retransmission has number %d behind %d: the space is not its own", repairs[n].SequenceNumber,
				repairs[n-1].SequenceNumber)
		}
	}
	if n := len(other.outlet.repaired()); n != 0 {
		t.Errorf("another receiver was sent %d retransmissions", n)
	}
	r.pass(HousekeepingInterval)
	if got := s.slot.Stats().Retransmissions; got != 5 {
		t.Errorf("slot counts %d retransmissions, expected 5", got)
	}
	// Each slot numbers its own retransmissions.
	first := other.outlet.sent()[0]
	other.nack(t, r.now, first.SequenceNumber)
	r.run()
	if repairs := other.outlet.repaired(); len(repairs) != 1 {
		t.Errorf("%d packets were retransmitted, expected 1: %+v", len(repairs), r.engine.Stats().NACKed)
	} else {
		checkRepair(t, repairs[0], first, 97)
	}
}

// TestAnswersNACKOfForeignTrack requests a packet from before a switch between groups, whose timestamps map
// differently.
func TestAnswersNACKOfForeignTrack(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{})
	a, b := r.publish(i, 10, volumetric.MIMEOpaque), r.publish(i, 20, "video/x-holography")
	b.Timestamp = 4_000_000_000
	s := r.subscribe(1000, volumetric.KindVideo)
	for n, p := range []*publisher{a, b} {
		s.slot.Select(p.track, uint64(n+1), r.now)
		r.run()
		for range 3 {
			r.now = r.now.Add(frameInterval)
			a.Next()
			a.Send(r.now, a.Packet([]byte{1, byte(a.Sequence)}, true))
			b.Next()
			b.Send(r.now, b.Packet([]byte{2, byte(b.Sequence)}, true))
			r.run()
		}
	}
	sent := s.outlet.sent()
	checkContinuous(t, sent)
	if sent[0].Payload[0] != 1 || sent[len(sent)-1].Payload[0] != 2 {
		t.Fatal("the slot did not switch")
	}
	s.nack(t, r.now, sent[0].SequenceNumber, sent[len(sent)-1].SequenceNumber)
	r.run()
	repairs := s.outlet.repaired()
	if len(repairs) != 2 {
		t.Fatalf("%d packets were retransmitted, expected 2: %+v", len(repairs), r.engine.Stats().NACKed)
	}
	checkRepair(t, repairs[0], sent[0], 99)
	checkRepair(t, repairs[1], sent[len(sent)-1], 99)
}

func TestNACKOutcomes(t *testing.T) {
	r := newRig(t, nil)
	publisherPeer := &fakePeer{}
	p := r.publish(r.ingress(publisherPeer), 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.peer.rtt = 40 * time.Millisecond
	s.slot.Select(p.track, 1, r.now)
	r.run()
	p.Next()
	packets := p.Packets(10 * 1144)
	lost := packets[4]
	p.Send(r.now, packets[:4]...)
	p.Send(r.now, packets[5:]...)
	r.run()
	sent := s.outlet.sent()
	hole := sent[3].SequenceNumber + 1
	if len(sent) != 9 || sent[4].SequenceNumber != hole+1 {
		t.Fatalf("%d packets were sent, expected 9 with a number reserved", len(sent))
	}
	ask := func(numbers ...uint16) counters.NACKOutcome {
		s.nack(t, r.now, numbers...)
		r.run()
		return r.engine.Stats().NACKed
	}
	if got := ask(hole); got != (counters.NACKOutcome{Owed: 1}) {
		t.Errorf("a packet that the publisher owes: %+v", got)
	}
	if got := ask(sent[8].SequenceNumber + 1); got != (counters.NACKOutcome{Owed: 1, Unknown: 1}) {
		t.Errorf("a number that is not sent yet: %+v", got)
	}
	r.now = r.now.Add(29 * time.Millisecond)
	if got := ask(sent[0].SequenceNumber); got != (counters.NACKOutcome{Owed: 1, Unknown: 1, Suppressed: 1}) {
		t.Errorf("a packet that was sent less than a round trip ago: %+v", got)
	}
	r.now = r.now.Add(2 * time.Millisecond)
	if got := ask(sent[0].SequenceNumber); got != (counters.NACKOutcome{Owed: 1, Unknown: 1, Suppressed: 1,
		Answered: 1}) {
		t.Errorf("a packet that was sent: %+v", got)
	}
	r.now = r.now.Add(39 * time.Millisecond)
	if got := ask(sent[0].SequenceNumber); got.Suppressed != 2 || got.Answered != 1 {
		t.Errorf("again after 39 of 40 ms round trip: %+v", got)
	}
	r.now = r.now.Add(2 * time.Millisecond)
	if got := ask(sent[0].SequenceNumber); got.Suppressed != 2 || got.Answered != 2 {
		t.Errorf("again after 41 of 40 ms round trip: %+v", got)
	}
	// The owed packet arrives, but the writer has not reached it: it is sent once, for the first time.
	p.Send(r.now, lost)
	w := r.engine.writers[0]
	s.nack(t, r.now, hole)
	w.drainInbox()
	r.run()
	sent = s.outlet.sent()
	if last := sent[len(sent)-1]; last.SequenceNumber != hole || len(s.outlet.repaired()) != 2 {
		t.Errorf("the owed packet went out under %d, expected %d, with %d retransmissions, expected 2",
			last.SequenceNumber, hole, len(s.outlet.repaired()))
	}
	r.now = r.now.Add(31 * time.Millisecond)
	if got := ask(hole); got.Answered != 3 {
		t.Errorf("the owed packet once it was sent: %+v", got)
	}
	if got := len(publisherPeer.take()); got != 0 {
		t.Errorf("the publisher was sent %d RTCP packets because of a receiver's NACK", got)
	}
	// Only the cache references packets.
	for range 8 {
		r.pass(200 * time.Millisecond)
		p.Next()
		p.Send(r.now, p.Packets(100)...)
	}
	r.run()
	if got := ask(sent[1].SequenceNumber); got.Expired != 1 {
		t.Errorf("a packet of 1.6 s ago: %+v", got)
	}
}

func TestNACKWithoutRTX(t *testing.T) {
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.outlet.rtx = 0
	s.slot.Select(p.track, 1, r.now)
	r.run()
	p.Next()
	p.Send(r.now, p.Packets(4000)...)
	r.run()
	s.nack(t, r.now, s.outlet.sent()[0].SequenceNumber)
	r.run()
	if n := len(s.outlet.sent()); n != 4 {
		t.Errorf("%d packets were sent, expected 4: a number must never be sent twice", n)
	}
	if got := r.engine.Stats().NACKed; got.Refused != 1 {
		t.Errorf("outcomes are %+v, expected one refused", got)
	}
}

// TestNACKFlood requests everything repeatedly. Work and retransmissions are bounded.
func TestNACKFlood(t *testing.T) {
	r := newRig(t, func(c *rigConfig) { c.MaxNACKed, c.RetransmissionBurst = 100, 30 })
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.slot.Select(p.track, 1, r.now)
	r.run()
	p.Next()
	p.Send(r.now, p.Packets(200*1144)...)
	r.run()
	first := s.outlet.sent()[0].SequenceNumber
	var pairs []rtcp.NackPair
	for n := uint16(0); n < 200; n += 17 {
		pairs = append(pairs, rtcp.NackPair{PacketID: first + n, LostPackets: 0xffff})
	}
	for range 50 {
		s.rtcp(t, r.now, &rtcp.TransportLayerNack{MediaSSRC: 1000, Nacks: pairs})
	}
	if n := len(s.slot.requests.nacked); n > 100 {
		t.Errorf("%d pairs wait, expected at most 100", n)
	}
	r.run()
	if n := len(s.outlet.repaired()); n != 30 {
		t.Errorf("%d packets were retransmitted, expected the burst of 30", n)
	}
	r.now = r.now.Add(time.Second)
	p.Next()
	p.Send(r.now, p.Packets(10*1144)...)
	r.run()
	s.rtcp(t, r.now, &rtcp.TransportLayerNack{MediaSSRC: 1000, Nacks: pairs})
	r.run()
	if n := len(s.outlet.repaired()); n != 40 {
		t.Errorf("%d packets were retransmitted, expected one more for each of 10 media packets", n)
	}
}

// TestNACKAfterTheDeadline requests a packet that would arrive too late.
func TestNACKAfterTheDeadline(t *testing.T) {
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.receiver.path.deadline, s.peer.rtt = 100*time.Millisecond, 20*time.Millisecond
	s.slot.Select(p.track, 1, r.now)
	r.run()
	p.Next()
	p.Send(r.now, p.Packets(1000)...)
	r.run()
	number := s.outlet.sent()[0].SequenceNumber
	r.now = r.now.Add(119 * time.Millisecond)
	s.nack(t, r.now, number)
	r.run()
	r.now = r.now.Add(21 * time.Millisecond)
	s.nack(t, r.now, number)
	r.run()
	if got := r.engine.Stats().NACKed; got != (counters.NACKOutcome{Answered: 1, Expired: 1}) {
		t.Errorf("outcomes are %+v, expected one answered in time and one too late", got)
	}
}

// TestNACKBehindAQueue requests a packet of a frame that has waited for longer than frames are usually worth repairing,
// like a receiver that knows the delay.
func TestNACKBehindAQueue(t *testing.T) {
	c := newConference(t, 20e6, withoutProbes)
	c.receiver.path.deadline, c.peer.rtt = 0, 20*time.Millisecond
	c.frames(time.Second, 5e6, nil)
	sent := len(c.link.departed)
	// A frame takes over 100 ms then.
	c.link.rate = 1e6
	c.frames(frameInterval, 5e6, nil)
	c.link.pass(400 * time.Millisecond)
	c.nack(t, c.now, c.link.departed[sent].SequenceNumber)
	c.link.pass(50 * time.Millisecond)
	if got := c.engine.Stats().NACKed; got != (counters.NACKOutcome{Answered: 1}) {
		t.Errorf("outcomes are %+v, expected one answered", got)
	}
}

// TestLookupsAreBounded requests unknown numbers of hundreds of slots at once, so that nothing is sent and no credit is
// used.
func TestLookupsAreBounded(t *testing.T) {
	const slots, burst = 200, 100
	r := newRig(t, func(c *rigConfig) { c.RetransmissionBurst = burst })
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.slot.Select(p.track, 1, r.now)
	for k := range slots {
		s.receiver.AddSlot(nullOutlet{uint32(2000 + 2*k)}, volumetric.KindVideo)
	}
	r.run()
	var dense, sparse []rtcp.NackPair
	for n := range 60 {
		dense = append(dense, rtcp.NackPair{PacketID: uint16(17 * n), LostPackets: 0xffff})
		sparse = append(sparse, rtcp.NackPair{PacketID: uint16(17 * n)})
	}
	var before counters.NACKOutcome
	ask := func(pairs []rtcp.NackPair) (looked, limited uint64) {
		for k := range slots {
			s.rtcp(t, r.now, &rtcp.TransportLayerNack{MediaSSRC: uint32(2000 + 2*k), Nacks: pairs})
		}
		if s.receiver.asked > burst*lookupsPerRepair {
			t.Errorf("%d pairs wait, expected at most %d", s.receiver.asked, burst*lookupsPerRepair)
		}
		r.run()
		now := r.engine.Stats().NACKed
		looked, limited = now.Unknown-before.Unknown, now.Limited-before.Limited
		before = now
		return looked, limited
	}
	if looked, limited := ask(dense); looked != burst*lookupsPerRepair || limited == 0 {
		t.Errorf("%d numbers were looked up, and %d not, expected %d and the others", looked, limited,
			burst*lookupsPerRepair)
	}
	if looked, limited := ask(sparse); looked != 0 || limited != slots*60 {
		t.Errorf("%d more were looked up, and %d not, expected none and %d", looked, limited, slots*60)
	}
	p.Next()
	p.Send(r.now, p.Packets(10*1144)...)
	r.run()
	if looked, _ := ask(sparse); looked != 10*lookupsPerRepair {
		t.Errorf("%d were looked up after ten packets, expected %d", looked, 10*lookupsPerRepair)
	}
	if s.receiver.asked != 0 {
		t.Errorf("%d pairs count as waiting once all are read", s.receiver.asked)
	}
}

// namedOutlet counts the calls of SSRC.
type namedOutlet struct {
	nullOutlet
	asked *int
}

func (o *namedOutlet) SSRC() uint32 {
	*o.asked++
	return o.ssrc
}

// TestSlotsAreFoundQuickly names hundreds of SSRCs in each packet, most of them unknown. The slots are not searched for
// each of them.
func TestSlotsAreFoundQuickly(t *testing.T) {
	const slots = 300
	r := newRig(t, nil)
	s := r.subscribe(1000, volumetric.KindVideo)
	asked := 0
	late := &namedOutlet{asked: &asked}
	for k := range slots {
		s.receiver.AddSlot(&namedOutlet{nullOutlet{uint32(2000 + 2*k)}, &asked}, volumetric.KindVideo)
	}
	s.receiver.AddSlot(late, volumetric.KindVideo)
	request := &rtcp.FullIntraRequest{}
	for k := range 180 {
		request.FIR = append(request.FIR, rtcp.FIREntry{SSRC: uint32(90_000 + k)})
	}
	for range 10 {
		s.rtcp(t, r.now, request)
	}
	if asked > slots+10 {
		t.Errorf("slots were asked for their SSRCs %d times by 10 packets, expected %d", asked, slots+10)
	}
	late.ssrc = 5000
	// The requests exceed the limit of a receiver.
	r.now = r.now.Add(r.engine.cfg.KeyFrameInterval)
	s.rtcp(t, r.now, &rtcp.PictureLossIndication{MediaSSRC: 5000})
	s.rtcp(t, r.now, &rtcp.PictureLossIndication{MediaSSRC: 2000})
	r.run()
	if got := r.engine.Stats().KeyFramesAsked; got != 2 {
		t.Errorf("%d requests came to slots, expected 2", got)
	}
}
