package e2e

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// TestMarksOfPublisherAndReceiver has two publishers and two receivers. The uplink of the first publisher and the
// downlink of the first receiver are DualPI2 queues of 20 Mbit/s, which the media would exceed; the other links are
// wide. The queues mark the packets of these hops only, the marks are reported, and every frame arrives whole. The test
// logs the use of the two links and their queues, which depend on the load of the machine.
func TestMarksOfPublisherAndReceiver(t *testing.T) {
	long.Test(t)
	const marking, wide = "rate=20Mbit,delay=10ms,queue=dualpi2", "delay=10ms"
	e := emulate(t, 10)
	many := testbed.Load{Name: "body", Tiles: 15, Qualities: 4, FrameBytes: 8000, Step: 2, Rate: 30}
	few := testbed.Load{Name: "desk", Tiles: 2, Qualities: 3, FrameBytes: 16_000, Step: 2, Rate: 30}
	alice, aliceHost := e.join(t, marking, wide, testbed.Part{Room: "room", Identity: "alice",
		Loads: []testbed.Load{many}})
	dave, daveHost := e.join(t, wide, wide, testbed.Part{Room: "room", Identity: "dave", Loads: []testbed.Load{few}})
	bob, bobHost := e.join(t, wide, wide, testbed.Part{Room: "room", Identity: "bob", Receive: true})
	carol, carolHost := e.join(t, wide, marking, testbed.Part{Room: "room", Identity: "carol", Receive: true})
	up := func() (netem.Stats, netem.DelayCounts) {
		s, _ := e.Network.AccessStats(aliceHost)
		d, _ := e.Network.QueueDelays(aliceHost, netem.Up)
		return s, d
	}
	down := func() (netem.Stats, netem.DelayCounts) {
		_, s := e.Network.AccessStats(carolHost)
		d, _ := e.Network.QueueDelays(carolHost, netem.Down)
		return s, d
	}
	wait.Until(t, "both hops are marked, and both receivers have frames of both publishers", func() bool {
		a, _ := up()
		c, _ := down()
		for _, p := range []*testbed.Peer{bob, carol} {
			if frames(p, tile("alice", "body", 0)) < 60 || frames(p, tile("dave", "desk", 0)) < 60 {
				return false
			}
		}
		return a.Marked >= 20 && c.Marked >= 20
	})
	upBefore, upDelays := up()
	downBefore, downDelays := down()
	before, begun := bob.Tile(tile("dave", "desk", 0)).Frames, time.Now()
	wait.Until(t, "bob has 150 more frames of dave",
		func() bool { return bob.Tile(tile("dave", "desk", 0)).Frames >= before+150 })
	length := time.Since(begun).Seconds()
	upAfter, upDelaysAfter := up()
	downAfter, downDelaysAfter := down()
	for name, hop := range map[string]struct {
		bytes, marks uint64
		delays       netem.DelayCounts
	}{
		"alice's uplink": {upAfter.DeliveredBytes - upBefore.DeliveredBytes, upAfter.Marked - upBefore.Marked,
			upDelaysAfter.Since(&upDelays)},
		"carol's downlink": {downAfter.DeliveredBytes - downBefore.DeliveredBytes, downAfter.Marked - downBefore.Marked,
			downDelaysAfter.Since(&downDelays)},
	} {
		t.Logf("%s: %.1f %% used, queue p50 %v, p99 %v, longest %v, %d marks", name,
			100*float64(hop.bytes)*8/20e6/length, hop.delays.Quantile(0.5), hop.delays.Quantile(0.99),
			hop.delays.Quantile(1), hop.marks)
	}
	t.Logf("estimates: alice %v, dave %v, bob %+v, carol %+v", alice.Session.Uplink().Estimate,
		dave.Session.Uplink().Estimate, bob.Bandwidth(), carol.Bandwidth())
	if upAfter.DroppedQueue+downAfter.DroppedQueue > 0 {
		t.Errorf("%d and %d packets were dropped by the queues, expected none", upAfter.DroppedQueue,
			downAfter.DroppedQueue)
	}
	daveUp, _ := e.Network.AccessStats(daveHost)
	_, bobDown := e.Network.AccessStats(bobHost)
	if daveUp.Marked+bobDown.Marked > 0 {
		t.Errorf("%d marks on dave's uplink, %d on bob's downlink, expected none", daveUp.Marked, bobDown.Marked)
	}
	for _, p := range []*testbed.Peer{bob, carol} {
		for _, s := range p.Session.Stats() {
			if s.Undecodable > 0 {
				t.Errorf("%s: %d frames of %v are undecodable", p.Session.Identity(), s.Undecodable, s.Track)
			}
		}
		if err := p.Failure(); err != nil {
			t.Error(err)
		}
	}
	// The server counts what receivers report.
	if s := e.Server.Stats(); s.TransportMarked < 20 || s.TransportFalseMarks > 0 {
		t.Errorf("%d marks are reported and %d are false, expected 20 or more, and none false", s.TransportMarked,
			s.TransportFalseMarks)
	}
}
