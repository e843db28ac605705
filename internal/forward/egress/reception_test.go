package egress

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// locatedPeer is a peer at an address.
type locatedPeer struct {
	fakePeer
	address netip.Addr
}

func (p *locatedPeer) RemoteAddress() netip.Addr { return p.address }

// TestReception compares the reception of a receiver with the packets that its link has carried and lost.
func TestReception(t *testing.T) {
	c := newConference(t, 20e6, withoutProbes)
	if reception, known := c.receiver.reception(); known {
		t.Errorf("at first the reception is %+v, expected none", reception)
	}
	c.frames(2*time.Second, 5e6, nil)
	before, known := c.receiver.reception()
	if !known || before.Sent == 0 || before.Reports == 0 || before.Lost != 0 || before.Requested != 0 ||
		before.Arrived > before.Sent || before.Arrived < before.Sent*9/10 {
		t.Errorf("on a link without losses the reception is %+v", before)
	}
	c.nack(t, c.now, c.link.departed[len(c.link.departed)-5].SequenceNumber)
	c.frames(200*time.Millisecond, 5e6, nil)
	after, _ := c.receiver.reception()
	if after.Requested != before.Requested+1 || after.Sent <= before.Sent || after.Reports <= before.Reports {
		t.Errorf("after a request the reception is %+v, before %+v", after, before)
	}
}

// TestReceptionCountsLatePacketsOnce: a packet that a report has as lost, and the next one as arrived, is not lost.
func TestReceptionCountsLatePacketsOnce(t *testing.T) {
	r := newRig(t, withoutProbes)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.peer.agree(testExtension)
	_, _ = s.receiver.reception()
	s.slot.Select(p.track, 1, r.now)
	r.run()
	p.Next()
	p.Send(r.now, p.Packets(20*1144)...)
	r.run()
	recorder := feedback.NewTransportRecorder(feedback.DefaultConfig().Transport)
	report := func(numbers ...int) Reception {
		for _, number := range numbers {
			recorder.Received(uint16(number), 1200, r.now)
		}
		r.pass(400 * time.Millisecond)
		for _, report := range reportsOf(recorder, r.now) {
			s.receiver.RTCP(report, r.now)
		}
		r.pass(2 * HousekeepingInterval)
		latest, _ := s.receiver.reception()
		return latest
	}
	numbers := s.peer.numbers(t, testExtension)
	early := report(slices.Concat(numbers[:5], numbers[6:])...)
	if early.Arrived != 19 || early.Lost != 1 {
		t.Errorf("without a packet the reception is %+v, expected 19 arrived and 1 lost", early)
	}
	if late := report(numbers[5]); late.Arrived != 20 || late.Lost != 0 || late.Reports <= early.Reports {
		t.Errorf("after the packet the reception is %+v, expected 20 arrived and none lost", late)
	}
}

// TestReceptionCountsKeyFrames: requests of a decoder that begins do not count, later requests do.
func TestReceptionCountsKeyFrames(t *testing.T) {
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEH264)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.receiver.reception()
	s.slot.Select(p.track, 1, r.now)
	r.run()
	p.Next()
	p.Send(r.now, p.Packet(h264Key, true))
	r.run()
	for _, step := range []struct {
		wait time.Duration
		want uint64
	}{{0, 0}, {settledAfter / 2, 0}, {settledAfter, 1}, {settledAfter, 2}} {
		r.now = r.now.Add(step.wait)
		s.rtcp(t, r.now, &rtcp.PictureLossIndication{MediaSSRC: 1000})
		r.run()
		r.now = r.now.Add(HousekeepingInterval)
		r.run()
		if got, known := s.receiver.reception(); !known || got.KeyFrames != step.want || got.Remote.IsValid() {
			t.Errorf("after %v the reception is %+v, expected %d requests", step.wait, got, step.want)
		}
	}
}

// TestReceptionHasTheAddress: receivers differ by their numbers, and have the addresses of their peers.
func TestReceptionHasTheAddress(t *testing.T) {
	r := newRig(t, nil)
	address := netip.MustParseAddr("10.1.2.3")
	r.engine.NewReceiver(&locatedPeer{address: address}, 0)
	r.engine.NewReceiver(&fakePeer{}, 0)
	r.engine.Receptions(nil)
	for receiver := range r.engine.open {
		receiver.path.publish(0)
	}
	receptions := r.engine.Receptions(nil)
	if len(receptions) != 2 || receptions[0].Receiver == receptions[1].Receiver {
		t.Fatalf("the receptions are %+v", receptions)
	}
	for _, reception := range receptions {
		if reception.Remote.IsValid() && reception.Remote != address {
			t.Errorf("an address is %v", reception.Remote)
		}
	}
	if receptions[0].Remote == receptions[1].Remote {
		t.Error("the addresses are equal")
	}
}
